/** What a program has switched on in the terminal that shows it, so that it can be switched off where the program can't. */

const ESCAPE = '\x1b'
/** Private modes that a shell expects to be off: the second screen, reports of the mouse and of focus, pastes in brackets, keys of another kind. */
const OFF_WANTED = new Set([1, 9, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1049, 2004])
const CURSOR = 25
const CHANGE = new RegExp(`${ESCAPE}\\[\\?([0-9;]{1,32})([hl])`, 'g')
/** The beginning of a change whose rest comes later. */
const CUT = new RegExp(`${ESCAPE}(\\[(\\?[0-9;]{0,32})?)?$`)

export class ScreenModes {
  readonly #on = new Set<number>()
  #isCursorHidden = false
  #cut = ''

  /** Takes what is shown. */
  show(bytes: Uint8Array): void {
    const text = this.#cut + Buffer.from(bytes).toString('latin1')
    for (const [, numbers = '', to] of text.matchAll(CHANGE)) {
      for (const number of numbers.split(';').map(Number)) this.#set(number, to === 'h')
    }
    this.#cut = CUT.exec(text)?.[0] ?? ''
  }

  /** What puts the screen back; empty where nothing was left on. */
  off(): string {
    const modes = [...this.#on].map((number) => `${ESCAPE}[?${number}l`)
    if (this.#isCursorHidden) modes.push(`${ESCAPE}[?${CURSOR}h`)
    return modes.length > 0 ? `${modes.join('')}${ESCAPE}[0m` : ''
  }

  #set(number: number, on: boolean): void {
    if (number === CURSOR) this.#isCursorHidden = !on
    else if (OFF_WANTED.has(number)) this.#on[on ? 'add' : 'delete'](number)
  }
}

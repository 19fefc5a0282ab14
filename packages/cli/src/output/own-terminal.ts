/** The terminal that this process runs in, lent to a program elsewhere: its keys come as they are, its screen is the program's. */
import { once } from 'node:events'
import { stdin, stdout } from 'node:process'
import { passOutputOn } from '../setup/own-terminal.ts'
import { ScreenModes } from '../shell/screen-modes.ts'

export interface OwnTerminal extends Disposable {
  readonly size: { readonly columns: number; readonly rows: number }
  /** Shows what the program shows; waits while the screen is behind. */
  show(bytes: Uint8Array): Promise<void>
  /** A line of ours, on a line of its own. */
  say(text: string): void
  /** Calls back with what is typed, and when the size has changed. */
  listen(onKeys: (keys: Uint8Array) => void, onSize: () => void): void
  /** Keys wait while this is on. */
  hold(on: boolean): void
}

/** As a terminal that nobody has asked. */
const SIZE = { columns: 80, rows: 24 }

/** Whether somebody sits at a terminal and types. */
export const isTyped = () => stdin.isTTY === true

/**
 * Takes the terminal. Disposing gives it back as it was, and so does the end of the process, whatever ends it but SIGKILL.
 */
export function takeTerminal(): OwnTerminal {
  const modes = new ScreenModes()
  let taken = true
  const giveBack = () => {
    if (!taken) return
    taken = false
    stdin.setRawMode(false)
    stdin.pause()
    const off = modes.off()
    if (off !== '' && stdout.isTTY) stdout.write(off)
  }
  process.once('exit', giveBack)
  stdin.setRawMode(true)
  passOutputOn()
  const listeners: (() => void)[] = []
  return {
    get size() {
      const { columns, rows } = stdout
      // A terminal that has no size says 0.
      return columns > 0 && rows > 0 ? { columns, rows } : SIZE
    },
    async show(bytes) {
      modes.show(bytes)
      if (!stdout.write(bytes)) await once(stdout, 'drain')
    },
    say: (text) => void process.stderr.write(`\r\nsandlot: ${text}\r\n`),
    listen(onKeys, onSize) {
      stdin.on('data', onKeys)
      stdout.on('resize', onSize)
      listeners.push(
        () => stdin.off('data', onKeys),
        () => stdout.off('resize', onSize),
      )
    },
    hold: (on) => void (on ? stdin.pause() : stdin.resume()),
    [Symbol.dispose]() {
      for (const stop of listeners) stop()
      process.off('exit', giveBack)
      giveBack()
    },
  }
}

/** What a terminal showed before somebody came to it, shown again. */

const ESCAPE = '\x1b'
/**
 * Questions that programs asked the terminal of that time: where its cursor is, what it is, which colours and modes it has. Asked again
 * they would be answered to whatever reads now.
 */
const QUESTIONS = new RegExp(
  [
    `${ESCAPE}\\[[?>]?[0-9;]{0,32}n`,
    `${ESCAPE}\\[[>=]?[0-9]{0,8}c`,
    `${ESCAPE}\\[\\??[0-9;]{0,32}\\$p`,
    `${ESCAPE}\\[>[0-9]{0,8}q`,
    `${ESCAPE}\\[\\?u`,
    `${ESCAPE}\\[(?:1[1-9]|2[01])t`,
    `${ESCAPE}\\[[0-9]{0,8}x`,
    `${ESCAPE}Z`,
    `${ESCAPE}P[$+]q[^${ESCAPE}]{0,512}${ESCAPE}\\\\`,
    `${ESCAPE}\\][0-9;]{1,32};\\?(?:\\x07|${ESCAPE}\\\\)`,
    '\\x05',
  ].join('|'),
  'g',
)
/** The beginning of a sequence whose rest comes later. */
const CUT = new RegExp(
  `${ESCAPE}(?:\\[[?>=]?[0-9;]{0,32}\\$?)?$|${ESCAPE}(?:P[$+]?q?|\\][0-9;]*\\??)[^\\x07${ESCAPE}]{0,512}${ESCAPE}?$`,
)

/** Takes the questions out of the bytes up to a position. */
export class Replay {
  readonly #until: number
  #cut = ''

  /** `until`: what comes from this position on is new. */
  constructor(until: number) {
    this.#until = until
  }

  /** What to show of a piece that stands at `offset`. */
  show({ bytes, offset }: { readonly bytes: Uint8Array; readonly offset: number }): Uint8Array {
    const oldBytes = Math.max(0, Math.min(bytes.length, this.#until - offset))
    if (oldBytes === 0 && this.#cut === '') return bytes
    let text = (this.#cut + latin1(bytes.subarray(0, oldBytes))).replace(QUESTIONS, '')
    this.#cut = oldBytes === bytes.length ? (CUT.exec(text)?.[0] ?? '') : ''
    text = text.slice(0, text.length - this.#cut.length)
    return Buffer.concat([Buffer.from(text, 'latin1'), bytes.subarray(oldBytes)])
  }
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}

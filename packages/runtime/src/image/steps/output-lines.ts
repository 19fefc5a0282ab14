import { imageLimits } from '../limits.ts'

/** Cuts the output of a step into lines, and shows of too much the beginning and the end. */
export class OutputLines {
  readonly #log: (line: string) => void
  readonly #rest = new Map<string, string>()
  readonly #decoders = new Map<string, InstanceType<typeof TextDecoder>>()
  /** Of what is not shown, the last lines: they say why a step failed. */
  readonly #last: string[] = []
  #sizeBytes = 0

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  take(channel: 'stdout' | 'stderr', bytes: Uint8Array): void {
    const decoder = this.#decoders.get(channel) ?? new TextDecoder()
    this.#decoders.set(channel, decoder)
    const before = this.#rest.get(channel) ?? ''
    // A progress bar draws one line again and again: what counts is how it stands in the end.
    const lines = (before + decoder.decode(bytes, { stream: true })).split(/\r?\n/)
    const rest = lines.pop() ?? ''
    for (const line of lines) this.#show(line)
    this.#rest.set(channel, rest.slice(-imageLimits.logLineBytesMax))
  }

  /** The last lines, which no newline ends. */
  end(): void {
    for (const rest of this.#rest.values()) if (rest !== '') this.#show(rest)
    this.#rest.clear()
    for (const line of this.#last.splice(0)) this.#log(line)
  }

  #show(line: string): void {
    const shown = line.slice(line.lastIndexOf('\r') + 1).slice(0, imageLimits.logLineBytesMax)
    const had = this.#sizeBytes
    this.#sizeBytes += shown.length + 1
    if (this.#sizeBytes <= imageLimits.stepLogBytesMax) this.#log(shown)
    else {
      if (had <= imageLimits.stepLogBytesMax) {
        this.#log(`(more than ${imageLimits.stepLogBytesMax} bytes: of the rest the end is shown)`)
      }
      this.#last.push(shown)
      if (this.#last.length > imageLimits.logLinesKept) this.#last.shift()
    }
  }
}

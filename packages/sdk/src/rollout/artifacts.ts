/** What an attempt leaves for a person: files by name, and the lines of its log. */
import { type Artifact, artifact, LIMITS, LOG_ARTIFACT, SandlotError } from '@sandlot/protocol'
import type { ClientContext } from '../connection/context.ts'
import { putBytes } from '../image/blob.ts'
import { concatenate } from '../sandbox/bytes.ts'
import type { Files } from '../sandbox/files.ts'

/** Text, bytes, or a file of the sandbox. */
export type ArtifactContent = string | Uint8Array | { readonly path: string }

export interface ArtifactsOptions {
  readonly files: Pick<Files, 'readStream'>
  readonly signal: AbortSignal
}

/** The artifacts of one attempt: each is stored when it is given, the log with the report. */
export class Artifacts {
  readonly #context: ClientContext
  readonly #options: ArtifactsOptions
  readonly #kept = new Map<string, Artifact>()
  /** Names of those that are being stored: each has its place already. */
  readonly #storing: string[] = []
  readonly #lines: Uint8Array[] = []
  #logBytes = 0
  #linesDropped = 0

  constructor(context: ClientContext, options: ArtifactsOptions) {
    this.#context = context
    this.#options = options
  }

  /** `ctx.artifact`. Throws `invalid_request` or `too_large`; the same name again takes the place of the first. */
  async put(name: string, content: ArtifactContent): Promise<void> {
    if (name === LOG_ARTIFACT) {
      throw new SandlotError(
        'invalid_request',
        `the artifact ${LOG_ARTIFACT} is the episode's log`,
        {
          hint: 'Use another name, or context.log(message).',
        },
      )
    }
    await this.#put(name, content)
  }

  /** `ctx.log`: beyond its bound lines are counted and no more kept. */
  log(message: string): void {
    const line = new TextEncoder().encode(`${new Date().toISOString()} ${String(message)}\n`)
    if (this.#linesDropped > 0 || this.#logBytes + line.length > LIMITS.logBytes) {
      this.#linesDropped++
      return
    }
    this.#logBytes += line.length
    this.#lines.push(line)
  }

  /** All of them, for the report. A log that can't be stored costs nobody a result. */
  async collect(): Promise<Artifact[]> {
    if (this.#lines.length > 0) await this.#put(LOG_ARTIFACT, this.#log()).catch(() => undefined)
    return [...this.#kept.values()]
  }

  #log(): Uint8Array {
    if (this.#linesDropped === 0) return concatenate(this.#lines)
    const more = new TextEncoder().encode(`… ${this.#linesDropped} more lines were not kept\n`)
    return concatenate([...this.#lines, more])
  }

  async #put(name: string, content: ArtifactContent): Promise<void> {
    checkName(name)
    const others = new Set([...this.#kept.keys(), ...this.#storing])
    others.delete(name)
    // The log has its place kept.
    if (others.size >= LIMITS.artifacts - (name === LOG_ARTIFACT ? 0 : 1)) throw tooMany()
    this.#storing.push(name)
    try {
      const bytes = await this.#bytesOf(name, content)
      const blob = await putBytes(this.#context, bytes, { signal: this.#options.signal })
      this.#kept.set(name, { name, blob, sizeBytes: bytes.length })
    } finally {
      this.#storing.splice(this.#storing.indexOf(name), 1)
    }
  }

  async #bytesOf(name: string, content: ArtifactContent): Promise<Uint8Array> {
    if (typeof content === 'string') return bounded(name, new TextEncoder().encode(content))
    if (content instanceof Uint8Array) return bounded(name, content)
    const { files, signal } = this.#options
    const parts: Uint8Array[] = []
    let sizeBytes = 0
    for await (const part of files.readStream(content.path, { signal })) {
      sizeBytes += part.length
      if (sizeBytes > LIMITS.artifactBytes) throw tooLarge(name)
      parts.push(part)
    }
    return concatenate(parts)
  }
}

function checkName(name: string): void {
  const parsed = artifact.shape.name.safeParse(name)
  if (parsed.success) return
  const shown = JSON.stringify(String(name).slice(0, 80))
  throw new SandlotError('invalid_request', `${shown} is not the name of an artifact`, {
    hint: `A name is one line of 1 to ${LIMITS.artifactNameLength} characters.`,
  })
}

function tooMany(): SandlotError {
  const message = `an attempt has at most ${LIMITS.artifacts - 1} artifacts`
  return new SandlotError('too_large', message, {
    hint: 'Put several files into one archive.',
  })
}

function bounded(name: string, bytes: Uint8Array): Uint8Array {
  if (bytes.length > LIMITS.artifactBytes) throw tooLarge(name)
  return bytes
}

function tooLarge(name: string): SandlotError {
  const message = `the artifact ${name} has more than ${LIMITS.artifactBytes} bytes`
  return new SandlotError('too_large', message, {
    hint: 'Leave a part of it, or write it to a store of your own.',
  })
}

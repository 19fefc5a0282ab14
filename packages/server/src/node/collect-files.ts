import { type Engine, EngineError } from '@sandlot/engine'
import { type Artifact, artifact, formatSize, LIMITS } from '@sandlot/protocol'
import { GuestError } from '@sandlot/runtime'
import picomatch from 'picomatch'
import { toSandlotError } from '../failure.ts'
import { SERVER_LIMITS } from '../limits.ts'
import type { Lent } from './lend.ts'

export interface CollectFilesRequest {
  readonly sandbox: string
  /** Whole paths, with wildcards. */
  readonly patterns: readonly string[]
}

export interface CollectedFiles {
  readonly artifacts: readonly Artifact[]
  /** What was left out, a line each. */
  readonly leftOut: readonly string[]
}

export interface CollectOptions {
  readonly blobs: Engine['blobs']
  readonly signal: AbortSignal
}

/**
 * Stores the regular files of a sandbox whose paths match, each under its path; links are not followed. What is too much, too large or
 * can't be read is left out and told: nothing of it fails but with the sandbox itself. When the signal is aborted it gives what it has.
 */
export async function collectFiles(
  lent: Lent,
  { patterns }: CollectFilesRequest,
  options: CollectOptions,
): Promise<CollectedFiles> {
  const collection = new Collection(lent, options)
  for (const pattern of patterns) {
    try {
      await collection.take(pattern)
    } catch (error) {
      if (options.signal.aborted) {
        collection.leaveOut(pattern, 'there was no more time to read it')
        break
      }
      if (!(error instanceof GuestError)) throw await lent.explain(error)
      collection.leaveOut(pattern, whyNotRead(pattern, error))
    }
  }
  return collection.done()
}

class Collection {
  readonly #lent: Lent
  readonly #options: CollectOptions
  readonly #files = new Map<string, Artifact>()
  readonly #leftOut = new Map<string, string>()
  /** Paths that were looked at: several patterns may match them. */
  readonly #seen = new Set<string>()
  #sizeBytes = 0
  #entries = 0

  constructor(lent: Lent, options: CollectOptions) {
    this.#lent = lent
    this.#options = options
  }

  async take(pattern: string): Promise<void> {
    const { base, isGlob } = picomatch.scan(pattern)
    if (!isGlob) return await this.#takeNamed(pattern)
    const depth = pattern.includes('**') ? SERVER_LIMITS.collectDepth : depthOf(pattern)
    await this.#walk(
      { pattern, matches: picomatch(pattern, { flags: 's' }), depth },
      base === '' ? '/' : base,
    )
  }

  leaveOut(path: string, why: string): void {
    this.#leftOut.set(path, `${path}: ${why}`)
  }

  done(): CollectedFiles {
    const lines = [...this.#leftOut.values()]
    const more = lines.length - LIMITS.leftOut
    const told =
      more > 0 ? [...lines.slice(0, LIMITS.leftOut - 1), `… and ${more + 1} more`] : lines
    return { artifacts: [...this.#files.values()], leftOut: told }
  }

  async #takeNamed(path: string): Promise<void> {
    const { files } = this.#lent.guest
    const { signal } = this.#options
    try {
      const { kind, sizeBytes } = await files.stat('main', path, {}, { signal })
      if (kind === 'file') await this.#takeFile(path, sizeBytes)
      else if (kind === 'directory') {
        this.leaveOut(path, `it is a directory: ${path.replace(/\/+$/, '')}/** is what is below it`)
      }
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }

  /** A directory that can't be listed is left out, with what is below it. */
  async #walk(search: Search, directory: string): Promise<void> {
    const { signal } = this.#options
    const below: string[] = []
    const files: [path: string, sizeBytes: number][] = []
    try {
      for await (const entry of this.#lent.guest.files.list('main', directory, { signal })) {
        if (++this.#entries > SERVER_LIMITS.collectEntries) break
        const name = textOf(entry.name)
        if (name === undefined) continue
        const path = directory === '/' ? `/${name}` : `${directory}/${name}`
        if (entry.kind === 'directory' && depthOf(path) < search.depth) below.push(path)
        if (entry.kind === 'file' && search.matches(path)) files.push([path, entry.sizeBytes])
      }
    } catch (error) {
      if (!(error instanceof GuestError)) throw error
      if (!isMissing(error)) this.leaveOut(directory, whyNotRead(directory, error))
    }
    for (const [path, sizeBytes] of files.sort(byPath)) await this.#takeFile(path, sizeBytes)
    for (const path of below.sort()) {
      if (this.#entries > SERVER_LIMITS.collectEntries) {
        const why = `more than ${SERVER_LIMITS.collectEntries} files are there: not all were looked at`
        this.leaveOut(search.pattern, why)
        return
      }
      await this.#walk(search, path)
    }
  }

  async #takeFile(path: string, sizeBytes: number): Promise<void> {
    if (this.#seen.has(path)) return
    this.#seen.add(path)
    const { blobs, signal } = this.#options
    const leftBytes = Math.min(LIMITS.artifactBytes, LIMITS.collectedBytes - this.#sizeBytes)
    const why = artifact.shape.name.safeParse(path).success
      ? this.#tooMuch(sizeBytes)
      : 'its path is too long, or not one line of text'
    if (why !== undefined) return this.leaveOut(path, why)
    try {
      const { content } = await this.#lent.guest.files.read('main', path, {}, { signal })
      // It may have grown since it was listed.
      const stored = await blobs.put(content, { sizeBytesMax: leftBytes, signal })
      this.#sizeBytes += stored.sizeBytes
      this.#files.set(path, { name: path, blob: stored.digest, sizeBytes: stored.sizeBytes })
    } catch (error) {
      if (signal.aborted || isLost(error)) throw error
      this.leaveOut(path, whyNotRead(path, error))
    }
  }

  #tooMuch(sizeBytes: number): string | undefined {
    if (this.#files.size >= LIMITS.collectedFiles) {
      return `more than ${LIMITS.collectedFiles} files match`
    }
    if (sizeBytes > LIMITS.artifactBytes) {
      return `it has ${formatSize(sizeBytes)}, and at most ${formatSize(LIMITS.artifactBytes)} are kept of a file`
    }
    if (this.#sizeBytes + sizeBytes > LIMITS.collectedBytes) {
      return `with it there would be more than ${formatSize(LIMITS.collectedBytes)} of an episode`
    }
    return undefined
  }
}

/** The guest says what it could not read, and often no more: that stands there already. */
export function whyNotRead(path: string, error: unknown): string {
  const { message, code } = toSandlotError(error)
  const why = message.startsWith(path) ? message.slice(path.length).replace(/^:? */, '') : message
  return why || `it can't be read (${code})`
}

interface Search {
  readonly pattern: string
  readonly matches: (path: string) => boolean
  /** Parts of the deepest path that can match. */
  readonly depth: number
}

function depthOf(path: string): number {
  return path.split('/').length - 1
}

function textOf(name: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(name)
  } catch {
    return undefined
  }
}

function isMissing(error: unknown): boolean {
  return (
    error instanceof GuestError && (error.code === 'not_found' || error.code === 'not_directory')
  )
}

/** What is neither the file's failure nor the disk's is the sandbox's. */
function isLost(error: unknown): boolean {
  return !(error instanceof GuestError) && !(error instanceof EngineError)
}

function byPath([a]: readonly [string, number], [b]: readonly [string, number]): number {
  return a < b ? -1 : 1
}

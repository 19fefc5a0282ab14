/** Files of one world of a sandbox. Paths are absolute, or below the sandbox's working directory. */

import { decodeMulti } from '@msgpack/msgpack'
import type { ConnectRequest, FileEntry, FileStat } from '@sandlot/protocol'
import type { Endpoint } from '../config.ts'
import { asSandlotError, type Connection } from '../connection/connection.ts'
import { request, requestJson } from '../connection/http.ts'
import { type ByteSource, bytesOf } from './bytes.ts'
import type { World } from './exec.ts'
import { packTree, unpackTree } from './tree.ts'

/** Text, or exact bytes where a name is not UTF-8. */
export type SandboxPath = string | Uint8Array

export interface Waiting {
  readonly signal?: AbortSignal
}

export interface FilesTarget {
  readonly connection: Connection
  readonly endpoint: () => Promise<Endpoint>
  readonly sandbox: string
  readonly world: World
}

const INPUT = 0
const OUTPUT = 1

export class Files {
  readonly #target: FilesTarget

  constructor(target: FilesTarget) {
    this.#target = target
  }

  /** A file's bytes. For a large one see `readStream`. */
  async read(
    path: SandboxPath,
    options: Waiting & { offset?: number; length?: number } = {},
  ): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    for await (const part of this.readStream(path, options)) parts.push(part)
    return Buffer.concat(parts)
  }

  /** A file's text; bytes that are not UTF-8 are replaced. */
  async readText(path: SandboxPath, options: Waiting = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options))
  }

  /** A file's bytes as they come, in constant memory. */
  async *readStream(
    path: SandboxPath,
    options: Waiting & { offset?: number; length?: number } = {},
  ): AsyncGenerator<Uint8Array> {
    const { signal, ...range } = options
    yield* this.#download({ op: 'file.read', ...this.#where(path), ...range }, signal)
  }

  /** Writes a file, making missing directories. Returns its size. */
  async write(
    path: SandboxPath,
    content: ByteSource,
    options: Waiting & { mode?: number; append?: boolean; exclusive?: boolean; user?: string } = {},
  ): Promise<{ sizeBytes: number }> {
    const { signal, append = false, exclusive = false, ...rest } = options
    const sent = {
      op: 'file.write' as const,
      ...this.#where(path),
      parents: true,
      append,
      exclusive,
      ...rest,
    }
    return (await this.#upload(sent, bytesOf(content), signal)) as { sizeBytes: number }
  }

  /** The entries of a directory, in no particular order. */
  async list(path: SandboxPath, options: Waiting = {}): Promise<FileEntry[]> {
    const parts: Uint8Array[] = []
    for await (const part of this.#download(
      { op: 'file.list', ...this.#where(path) },
      options.signal,
    ))
      parts.push(part)
    const entries: FileEntry[] = []
    for (const entry of decodeMulti(Buffer.concat(parts)))
      entries.push(fileEntryOf(entry as WireEntry))
    return entries
  }

  /** What stands at a path. Follows a symlink unless told not to. */
  async stat(path: string, options: Waiting & { follow?: boolean } = {}): Promise<FileStat> {
    return await this.#json(
      'statFile',
      { query: { path, follow: options.follow, ...this.#world() } },
      options.signal,
    )
  }

  /** Removes a file, or a directory with `recursive`. `force`: what is not there is fine. */
  async remove(
    path: string,
    options: Waiting & { recursive?: boolean; force?: boolean } = {},
  ): Promise<void> {
    const { recursive, force } = options
    await this.#void(
      'removeFile',
      { query: { path, recursive, force, ...this.#world() } },
      options.signal,
    )
  }

  /** Makes a directory and the missing ones above it. */
  async makeDirectory(path: string, options: Waiting & { mode?: number } = {}): Promise<void> {
    const mode = options.mode === undefined ? {} : { mode: options.mode }
    await this.#void(
      'makeDirectory',
      { json: { path, parents: true, ...mode, ...this.#world() } },
      options.signal,
    )
  }

  async rename(from: string, to: string, options: Waiting = {}): Promise<void> {
    await this.#void('renameFile', { json: { from, to, ...this.#world() } }, options.signal)
  }

  /** Sets permission bits, e.g. 0o755. */
  async changeMode(path: string, mode: number, options: Waiting = {}): Promise<void> {
    await this.#void('changeMode', { json: { path, mode, ...this.#world() } }, options.signal)
  }

  /** Copies a file or a directory of this machine to `remote`, in constant memory. */
  async upload(local: string, remote: SandboxPath, options: Waiting = {}): Promise<void> {
    await packTree(local, {
      file: async (content, mode) => void (await this.write(remote, content, { ...options, mode })),
      tree: async (tar) =>
        void (await this.#upload({ op: 'tar.in', ...this.#where(remote) }, tar, options.signal)),
    })
  }

  /**
   * Copies a file or a directory of the sandbox to `local`, in constant memory. Nothing is written outside `local`, whatever names
   * and links the sandbox holds; devices and FIFOs are left out.
   */
  async download(remote: string, local: string, options: Waiting = {}): Promise<void> {
    const { kind, mode } = await this.stat(remote, options)
    if (kind === 'directory') {
      await unpackTree(
        this.#download({ op: 'tar.out', ...this.#where(remote) }, options.signal),
        local,
      )
      return
    }
    const { writeStreamed } = await import('./tree.ts')
    await writeStreamed(this.readStream(remote, options), local, mode)
  }

  async *#download(
    sent: ConnectRequest,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array> {
    try {
      const stream = await this.#target.connection.open(sent, signal)
      let complete = false
      try {
        yield* stream.read(OUTPUT)
        await stream.done
        complete = true
      } finally {
        if (!complete) stream.cancel()
      }
    } catch (error) {
      throw asSandlotError(error)
    }
  }

  async #upload(
    sent: ConnectRequest,
    content: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    try {
      const stream = await this.#target.connection.open(sent, signal)
      stream.done.catch(() => undefined)
      try {
        for await (const part of content) await stream.send(INPUT, part)
        stream.end(INPUT)
      } catch (error) {
        // The other side's refusal says more than the broken pipe it caused.
        stream.cancel()
        await stream.done
        throw error
      }
      return await stream.done
    } catch (error) {
      throw asSandlotError(error)
    }
  }

  async #json<T>(route: 'statFile', options: object, signal: AbortSignal | undefined): Promise<T> {
    const { sandbox: id } = this.#target
    return await requestJson<T>(await this.#target.endpoint(), route, {
      parameters: { id },
      signal,
      ...options,
    })
  }

  async #void(
    route: 'removeFile' | 'makeDirectory' | 'renameFile' | 'changeMode',
    options: object,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { sandbox: id } = this.#target
    await request(await this.#target.endpoint(), route, { parameters: { id }, signal, ...options })
  }

  #where(path: SandboxPath) {
    return { sandbox: this.#target.sandbox, world: this.#target.world, path }
  }

  #world(): { world?: World } {
    return this.#target.world === 'main' ? {} : { world: this.#target.world }
  }
}

interface WireEntry {
  readonly name: Uint8Array
  readonly kind: FileEntry['kind']
  readonly sizeBytes: number
  readonly mode: number
  readonly mtimeMs: number
}

function fileEntryOf({ name, ...rest }: WireEntry): FileEntry {
  const text = new TextDecoder().decode(name)
  const exact = Buffer.from(text).equals(Buffer.from(name))
  return {
    name: text,
    ...(exact ? {} : { nameBase64: Buffer.from(name).toString('base64') }),
    ...rest,
  }
}

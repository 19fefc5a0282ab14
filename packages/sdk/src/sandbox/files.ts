/** Files of one world of a sandbox. Paths are absolute, or below the sandbox's working directory. */
import type { FileEntry, FileStat, FileUrl } from '@sandlot/protocol'
import type { Waiting } from '../connection/context.ts'
import { joinSignals } from '../connection/signals.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { type ByteSource, bytesOf, concatenate, isWhole, textOf } from './bytes.ts'
import { decodeEntries } from './file-entries.ts'
import { FileStreams, type FilesTarget } from './file-streams.ts'
import { writeLocalFile } from './local-file.ts'
import { downloadTree } from './tree-download.ts'
import { localContent } from './tree-upload.ts'

/** Text, or exact bytes where a name is not UTF-8. */
export type SandboxPath = string | Uint8Array

export interface ReadOptions extends Waiting {
  /** Bytes to skip. Default 0. */
  readonly offset?: number
  /** Bytes to read at most. Default: to the end. */
  readonly length?: number
}

export interface WriteOptions extends Waiting {
  /** Permission bits of a file that is new. Default 0o644. */
  readonly mode?: number
  readonly append?: boolean
  /** Fails with `file_exists` where there is one. */
  readonly exclusive?: boolean
  /** Owner of a file that is new: a name, or `uid[:gid]`. Default: the sandbox's user. */
  readonly user?: string
}

export interface FileUrlOptions extends Waiting {
  /** `GET` reads the file, `PUT` writes it. Default `GET`. */
  readonly method?: 'GET' | 'PUT'
  /** How long it is good: `'1h'`, at most 7 days. Default 10 minutes. */
  readonly expires?: string | number
}

/**
 * What can be done again without harm is done again over a lost connection; a write that appends, is exclusive or comes
 * from a stream rejects with `connection_lost`.
 */
export class Files {
  readonly #target: FilesTarget
  readonly #streams: FileStreams

  constructor(target: FilesTarget) {
    this.#target = target
    this.#streams = new FileStreams(target)
  }

  /** A file's bytes. For a large one see `readStream`. */
  async read(path: SandboxPath, options: ReadOptions = {}): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    for await (const part of this.readStream(path, options)) parts.push(part)
    return concatenate(parts)
  }

  /** A file's text; bytes that are not UTF-8 are replaced. */
  async readText(path: SandboxPath, options: ReadOptions = {}): Promise<string> {
    return textOf(await this.read(path, options))
  }

  /** A file's bytes as they come, in constant memory. */
  readStream(path: SandboxPath, options: ReadOptions = {}): AsyncGenerator<Uint8Array> {
    refuseUnknown(options, ['offset', 'length', 'signal'])
    return this.#streams.readFile(path, options)
  }

  /**
   * Writes a file, making missing directories. Returns its size. It is written where it is: a write that fails leaves what came of it, so
   * write a file that others read under another name, and move it.
   */
  async write(
    path: SandboxPath,
    content: ByteSource,
    options: WriteOptions = {},
  ): Promise<{ sizeBytes: number }> {
    refuseUnknown(options, ['mode', 'append', 'exclusive', 'user', 'signal'])
    const { signal, append = false, exclusive = false, ...rest } = options
    const request = { op: 'file.write', path, parents: true, append, exclusive, ...rest } as const
    const again = isWhole(content) && !append && !exclusive
    const answer = await this.#streams.upload(request, () => bytesOf(content), { signal, again })
    return { sizeBytes: Number(answer.sizeBytes) }
  }

  /** The entries of a directory, in no particular order. */
  async list(path: SandboxPath, { signal }: Waiting = {}): Promise<FileEntry[]> {
    return await this.#streams.again(signal, async () => {
      const parts: Uint8Array[] = []
      for await (const part of this.#streams.download({ op: 'file.list', path }, signal)) {
        parts.push(part)
      }
      return decodeEntries(concatenate(parts))
    })
  }

  /** What stands at a path. Follows a symlink unless told not to. */
  async stat(
    path: string,
    options: Waiting & { readonly follow?: boolean } = {},
  ): Promise<FileStat> {
    refuseUnknown(options, ['follow', 'signal'])
    using joined = joinSignals(options.signal, this.#target.signal)
    return await this.#target.http.json('statFile', {
      parameters: { id: this.#target.sandbox },
      query: { path, follow: options.follow, ...this.#world() },
      signal: joined.signal,
    })
  }

  /** Removes a file, or a directory with `recursive`. `force`: what is not there is fine. */
  async remove(
    path: string,
    options: Waiting & { readonly recursive?: boolean; readonly force?: boolean } = {},
  ): Promise<void> {
    refuseUnknown(options, ['recursive', 'force', 'signal'])
    const { recursive, force, signal } = options
    await this.#send('removeFile', { query: { path, recursive, force, ...this.#world() } }, signal)
  }

  /** Makes a directory and the missing ones above it. */
  async makeDirectory(
    path: string,
    options: Waiting & { readonly mode?: number } = {},
  ): Promise<void> {
    refuseUnknown(options, ['mode', 'signal'])
    const { mode, signal } = options
    const json = { path, parents: true, mode, ...this.#world() }
    await this.#send('makeDirectory', { json }, signal)
  }

  async rename(from: string, to: string, { signal }: Waiting = {}): Promise<void> {
    await this.#send('renameFile', { json: { from, to, ...this.#world() } }, signal)
  }

  /** Sets permission bits, e.g. 0o755. */
  async changeMode(path: string, mode: number, { signal }: Waiting = {}): Promise<void> {
    await this.#send('changeMode', { json: { path, mode, ...this.#world() } }, signal)
  }

  /**
   * Copies a file, or a directory's content, of this machine to `remote`, in constant memory. Sockets, devices and FIFOs are left
   * out; symlinks keep their text; all belongs to the sandbox's user.
   */
  async upload(local: string, remote: SandboxPath, { signal }: Waiting = {}): Promise<void> {
    const { kind, mode, open } = await localContent(local)
    const request =
      kind === 'directory'
        ? ({ op: 'tar.in', path: remote } as const)
        : ({
            op: 'file.write',
            path: remote,
            mode,
            parents: true,
            append: false,
            exclusive: false,
          } as const)
    await this.#streams.upload(request, open, { signal, again: true })
  }

  /**
   * Copies a file, or a directory's content, of the sandbox to `local`, in constant memory. Nothing is written outside `local`,
   * whatever names and links the sandbox holds; devices, FIFOs and symlinks that lead outside are left out.
   */
  async download(remote: string, local: string, { signal }: Waiting = {}): Promise<void> {
    const waiting = signal ? { signal } : {}
    const { kind, mode } = await this.stat(remote, waiting)
    if (kind !== 'directory') {
      await writeLocalFile(this.readStream(remote, waiting), local, mode)
      return
    }
    await this.#streams.again(signal, async () => {
      await downloadTree(this.#streams.download({ op: 'tar.out', path: remote }, signal), local)
    })
  }

  /**
   * A URL by which anybody who has it reads the file, or with `method: 'PUT'` writes it, without a key: until it expires, the sandbox ends
   * or the key in use is revoked. Its own address is that by which this client reaches the daemon.
   */
  async url(path: string, options: FileUrlOptions = {}): Promise<string> {
    refuseUnknown(options, ['method', 'expires', 'signal'])
    const { method, expires, signal } = options
    using joined = joinSignals(signal, this.#target.signal)
    const { http, sandbox } = this.#target
    const made = await http.json<FileUrl>('createFileUrl', {
      parameters: { id: sandbox },
      json: { path, method, expires, ...this.#world() },
      signal: joined.signal,
    })
    return await http.at(made.path)
  }

  async #send(
    route: 'removeFile' | 'makeDirectory' | 'renameFile' | 'changeMode',
    options: { readonly query?: object; readonly json?: object },
    signal: AbortSignal | undefined,
  ): Promise<void> {
    using joined = joinSignals(signal, this.#target.signal)
    const parameters = { id: this.#target.sandbox }
    await this.#target.http.send(route, { ...options, parameters, signal: joined.signal } as never)
  }

  #world() {
    return this.#target.world === 'main' ? {} : { world: this.#target.world }
  }
}

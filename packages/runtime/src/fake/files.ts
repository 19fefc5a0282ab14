import { posix } from 'node:path'
import type { GuestFileKind, GuestFileStat, GuestText } from '../guest/guest.ts'
import { GuestError } from '../guest/guest-error.ts'

/** One file, directory or link. Never changed in place, so that worlds can share it. */
export interface FakeNode {
  readonly kind: Extract<GuestFileKind, 'file' | 'directory' | 'symlink'>
  readonly bytes: Uint8Array
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly mtimeMs: number
}

const NOTHING = new Uint8Array()
const DIRECTORY: FakeNode = node('directory', NOTHING, 0o755)
const FIRST: readonly string[] = ['/', '/tmp', '/root', '/etc', '/home']
const LINKS_MAX = 40

/** Files of one world, by absolute path. */
export class FakeFiles {
  readonly #nodes: Map<string, FakeNode>
  /** As it was when its world was opened. */
  readonly #below: ReadonlyMap<string, FakeNode>
  readonly #bytesMax: number
  #bytes = 0

  /** With `below`, another world's files are seen until they are written. */
  constructor(bytesMax: number, below?: FakeFiles) {
    this.#bytesMax = bytesMax
    this.#nodes = below ? new Map(below.#nodes) : new Map(FIRST.map((path) => [path, DIRECTORY]))
    this.#below = new Map(this.#nodes)
  }

  /** What was written since the world was opened, and what was removed: that has no node. Parents come first. */
  changes(exclude: readonly string[]): (readonly [string, FakeNode | undefined])[] {
    const roots = exclude.map(excludedPath)
    const isNewDirectory = (path: string) =>
      !this.#below.has(path) && this.#nodes.get(path)?.kind === 'directory'
    const excluded = (path: string) =>
      roots.some((each) => path.startsWith(`${each}/`) || (path === each && !isNewDirectory(path)))
    const paths = new Set([...this.#below.keys(), ...this.#nodes.keys()])
    return [...paths]
      .filter((path) => this.#nodes.get(path) !== this.#below.get(path) && !excluded(path))
      .sort()
      .map((path) => [path, this.#nodes.get(path)] as const)
  }

  get usedBytes(): number {
    return this.#bytes
  }

  get totalBytes(): number {
    return this.#bytesMax
  }

  get count(): number {
    return this.#nodes.size
  }

  /** For scripts: the content of a file, or undefined. */
  bytes(path: string): Uint8Array | undefined {
    const found = this.find(path)
    return found?.kind === 'file' ? found.bytes : undefined
  }

  /** For scripts: writes a file and makes its directories. */
  put(path: string, content: string | Uint8Array, mode = 0o644): void {
    this.makeDirectory(posix.dirname(absolute(path)), true)
    this.set(path, node('file', typeof content === 'string' ? Buffer.from(content) : content, mode))
  }

  find(path: GuestText, follow = true): FakeNode | undefined {
    return this.#nodes.get(this.#resolve(absolute(path), follow))
  }

  /** Fails with `not_found`. */
  get(path: GuestText, follow = true): FakeNode {
    const found = this.find(path, follow)
    if (!found) throw new GuestError('not_found', `${text(path)}: no such file or directory`)
    return found
  }

  /** Fails with `not_found` or `not_directory` for its directory, `is_directory`, `no_space`. */
  set(path: GuestText, next: FakeNode): void {
    const key = this.#resolve(absolute(path), next.kind !== 'symlink')
    const parent = this.get(posix.dirname(key))
    if (parent.kind !== 'directory') throw new GuestError('not_directory', text(path))
    const before = this.#nodes.get(key)
    if (before?.kind === 'directory' && next.kind !== 'directory') {
      throw new GuestError('is_directory', text(path))
    }
    const bytes = this.#bytes + next.bytes.length - (before?.bytes.length ?? 0)
    if (bytes > this.#bytesMax) throw new GuestError('no_space', `${text(path)}: no space left`)
    this.#bytes = bytes
    this.#nodes.set(key, next)
  }

  makeDirectory(path: GuestText, parents: boolean, mode = 0o755): void {
    const key = this.#resolve(absolute(path), true)
    const there = this.#nodes.get(key)
    if (there) {
      if (parents && there.kind === 'directory') return
      throw new GuestError('exists', text(path))
    }
    if (parents) this.makeDirectory(posix.dirname(key), true)
    this.set(key, node('directory', NOTHING, mode))
  }

  remove(path: GuestText, recursive: boolean): void {
    const key = this.#resolve(absolute(path), false)
    this.get(key, false)
    const below = this.below(key)
    if (below.length > 0 && !recursive) throw new GuestError('not_empty', text(path))
    for (const [each, { bytes }] of [...below, [key, this.get(key, false)] as const]) {
      this.#bytes = Math.max(0, this.#bytes - bytes.length)
      this.#nodes.delete(each)
    }
  }

  rename(from: GuestText, to: GuestText): void {
    const [source, target] = [this.#resolve(absolute(from), false), absolute(to)]
    const moved = this.get(source, false)
    const below = this.below(source)
    this.#bytes -= moved.bytes.length
    this.#nodes.delete(source)
    this.set(target, moved)
    for (const [path, each] of below) {
      this.#nodes.delete(path)
      this.#nodes.set(target + path.slice(source.length), each)
    }
  }

  /** Everything below a directory with its path, itself excluded. */
  below(path: GuestText): (readonly [string, FakeNode])[] {
    const key = this.#resolve(absolute(path), true)
    const prefix = key === '/' ? '/' : `${key}/`
    return [...this.#nodes].filter(([each]) => each.startsWith(prefix) && each !== key)
  }

  #resolve(path: string, follow: boolean): string {
    let at = path
    for (let links = 0; ; links++) {
      const link = this.#firstLink(at, follow)
      if (link === undefined) return at
      if (links >= LINKS_MAX) throw new GuestError('io', `${path}: too many links`)
      const target = text(this.#nodes.get(link)?.bytes ?? NOTHING)
      at = posix.join(posix.resolve(posix.dirname(link), target), at.slice(link.length))
    }
  }

  #firstLink(path: string, follow: boolean): string | undefined {
    for (let end = path.indexOf('/', 1); end !== -1; end = path.indexOf('/', end + 1)) {
      const part = path.slice(0, end)
      if (this.#nodes.get(part)?.kind === 'symlink') return part
    }
    return follow && this.#nodes.get(path)?.kind === 'symlink' ? path : undefined
  }
}

export function node(
  kind: FakeNode['kind'],
  bytes: Uint8Array,
  mode: number,
  owner: { uid?: number; gid?: number } = {},
): FakeNode {
  return { kind, bytes, mode, uid: owner.uid ?? 0, gid: owner.gid ?? 0, mtimeMs: 0 }
}

export function statOf(each: FakeNode): GuestFileStat {
  const { kind, mode, uid, gid, mtimeMs } = each
  const target = kind === 'symlink' ? { target: each.bytes } : {}
  return { kind, sizeBytes: each.bytes.length, mode, uid, gid, mtimeMs, ...target }
}

function excludedPath(path: string): string {
  const resolved = absolute(path)
  if (resolved === '/') throw new GuestError('invalid', 'exclude names / itself')
  return resolved
}

function absolute(path: GuestText): string {
  const name = text(path)
  if (!name.startsWith('/')) throw new GuestError('invalid', `${name}: not an absolute path`)
  return posix.resolve(name)
}

export function text(value: GuestText): string {
  return typeof value === 'string' ? value : Buffer.from(value).toString()
}

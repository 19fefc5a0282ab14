import { posix } from 'node:path'
import type {
  ContentStream,
  FileContent,
  GuestBytes,
  GuestFileEntry,
  GuestFiles,
  GuestText,
  GuestWait,
  ReadRange,
  WriteOptions,
} from '../guest/guest.ts'
import { GuestError } from '../guest/guest-error.ts'
import { unlessAborted } from '../unless-aborted.ts'
import { collect } from './execs.ts'
import { type FakeFiles, node, statOf, text } from './files.ts'

/** The file requests of a guest over the files of its worlds. */
export function fileCalls(filesOf: (world: string) => FakeFiles): GuestFiles {
  return {
    read: async (world, path, range) => read(filesOf(world), path, range ?? {}),
    write: async (world, path, content, options, wait) =>
      write(() => filesOf(world), path, content, options ?? {}, wait),
    stat: async (world, path, options) => statOf(filesOf(world).get(path, options?.follow ?? true)),
    list: (world, path) => list(filesOf(world), path),
    makeDirectory: async (world, path, options) =>
      filesOf(world).makeDirectory(path, options?.parents ?? false, options?.mode),
    remove: async (world, path, options) => {
      const files = filesOf(world)
      if (options?.force && !files.find(path, false)) return
      files.remove(path, options?.recursive ?? false)
    },
    rename: async (world, from, to) => filesOf(world).rename(from, to),
    chmod: async (world, path, mode) => {
      const files = filesOf(world)
      files.set(path, { ...files.get(path), mode })
    },
  }
}

function read(files: FakeFiles, path: GuestText, range: ReadRange): FileContent {
  const found = files.get(path)
  if (found.kind === 'directory') throw new GuestError('is_directory', text(path))
  const from = range.offset ?? 0
  const bytes = found.bytes.subarray(from, from + (range.length ?? found.bytes.length))
  return {
    stat: statOf(found),
    content: streamOf(bytes.length > 0 ? [bytes] : [], { sizeBytes: bytes.length }),
  }
}

async function write(
  filesNow: () => FakeFiles,
  path: GuestText,
  content: GuestBytes,
  options: WriteOptions,
  wait: GuestWait | undefined,
): Promise<{ sizeBytes: number }> {
  if (options.exclusive && filesNow().find(path)) throw new GuestError('exists', text(path))
  wait?.signal?.throwIfAborted()
  const bytes = await unlessAborted(wait?.signal, collect(content))
  const files = filesNow()
  if (options.parents) files.makeDirectory(posix.dirname(text(path)), true)
  const before = files.find(path)
  if (before?.kind === 'directory') throw new GuestError('is_directory', text(path))
  const whole = options.append && before ? Buffer.concat([before.bytes, bytes]) : bytes
  files.set(
    path,
    before ? { ...before, bytes: whole } : node('file', whole, options.mode ?? 0o644, options),
  )
  return { sizeBytes: bytes.length }
}

async function* list(files: FakeFiles, path: GuestText): AsyncIterable<GuestFileEntry> {
  if (files.get(path).kind !== 'directory') throw new GuestError('not_directory', text(path))
  const below = files.below(path)
  const depth = Math.min(...below.map(([each]) => each.split('/').length))
  for (const [each, found] of below) {
    if (each.split('/').length > depth) continue
    const { kind, sizeBytes, mode, mtimeMs } = statOf(found)
    yield { name: Buffer.from(posix.basename(each)), kind, sizeBytes, mode, mtimeMs }
  }
}

export function streamOf<Result>(
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  result: Result,
): ContentStream<Result> {
  const done = Promise.withResolvers<Result>()
  done.promise.catch(() => {})
  const cancel = () => done.reject(new GuestError('cancelled', 'the transfer was stopped'))
  return {
    result: done.promise,
    cancel,
    [Symbol.asyncIterator]: async function* () {
      try {
        yield* chunks
        done.resolve(result)
      } finally {
        cancel()
      }
    },
  }
}

import { isUtf8 } from 'node:buffer'
import type { FileEntry, FileStat } from '@sandlot/protocol'
import type { GuestFileEntry, GuestFileStat } from '@sandlot/runtime'
import type { BytesAnswer, Call, Handlers } from '../http/call.ts'
import { resolvePath } from '../node/commands.ts'
import type { Node } from '../node/node.ts'
import { lendFor, streamOut, withSandbox } from './use.ts'
import { userIds } from './user.ts'

type FileRoutes =
  | 'readFile'
  | 'writeFile'
  | 'removeFile'
  | 'statFile'
  | 'listFiles'
  | 'makeDirectory'
  | 'renameFile'
  | 'changeMode'
  | 'downloadTree'
  | 'uploadTree'

/** Files of a sandbox over plain HTTP; contents stream both ways in constant memory. */
export function fileHandlers(node: Node): Pick<Handlers, FileRoutes> {
  return {
    readFile: (call) => readFile(node, call),
    writeFile: (call) => writeFile(node, call),
    removeFile: (call) =>
      withSandbox(node, call, async ({ guest, workdir }) => {
        const { path, recursive = false, force = false } = call.query
        const at = resolvePath(workdir, path)
        await guest.files.remove(worldOf(call.query), at, { recursive, force }, wait(call))
        return undefined
      }),
    statFile: (call) =>
      withSandbox(node, call, async ({ guest, workdir }) => {
        const { path, follow = true } = call.query
        const at = resolvePath(workdir, path)
        return statView(await guest.files.stat(worldOf(call.query), at, { follow }, wait(call)))
      }),
    listFiles: async (call) => {
      const lent = await lendFor(node, call)
      return streamOut(lent, ({ guest, workdir }) =>
        mapped(
          guest.files.list(worldOf(call.query), resolvePath(workdir, call.query.path), wait(call)),
          entryView,
        ),
      )
    },
    makeDirectory: (call) =>
      withSandbox(node, call, async ({ guest, workdir }) => {
        const { path, parents = false, mode } = call.body
        const options = { parents, ...(mode === undefined ? {} : { mode }) }
        const at = resolvePath(workdir, path)
        await guest.files.makeDirectory(worldOf(call.body), at, options, wait(call))
        return undefined
      }),
    renameFile: (call) =>
      withSandbox(node, call, async ({ guest, workdir }) => {
        const from = resolvePath(workdir, call.body.from)
        const to = resolvePath(workdir, call.body.to)
        await guest.files.rename(worldOf(call.body), from, to, wait(call))
        return undefined
      }),
    changeMode: (call) =>
      withSandbox(node, call, async ({ guest, workdir }) => {
        const at = resolvePath(workdir, call.body.path)
        await guest.files.chmod(worldOf(call.body), at, call.body.mode, wait(call))
        return undefined
      }),
    downloadTree: async (call) => {
      const lent = await lendFor(node, call)
      const body = streamOut(lent, ({ guest, workdir }) =>
        guest.tar.out(worldOf(call.query), resolvePath(workdir, call.query.path), wait(call)),
      )
      return { body, headers: { 'content-type': 'application/x-tar' } }
    },
    uploadTree: (call) =>
      withSandbox(node, call, async ({ guest, workdir, user }) => {
        const world = worldOf(call.query)
        const at = resolvePath(workdir, call.query.path)
        const owner = await userIds(guest, world, user, call.signal)
        return await guest.tar.in(world, at, call.body, owner, wait(call))
      }),
  }
}

async function readFile(node: Node, call: Call<'readFile'>): Promise<BytesAnswer> {
  const lent = await lendFor(node, call)
  const { path, offset, length } = call.query
  const range = {
    ...(offset === undefined ? {} : { offset }),
    ...(length === undefined ? {} : { length }),
  }
  try {
    const at = resolvePath(lent.workdir, path)
    const file = await lent.guest.files.read(worldOf(call.query), at, range, wait(call))
    const { mode, mtimeMs, sizeBytes } = file.stat
    return {
      body: streamOut(lent, () => file.content),
      // The size when it was opened: it may grow meanwhile, so it is no promise of what comes.
      headers: {
        'x-sandlot-size': String(sizeBytes),
        'x-sandlot-mode': mode.toString(8),
        'x-sandlot-mtime-ms': String(mtimeMs),
      },
    }
  } catch (error) {
    const explained = await lent.explain(error)
    lent[Symbol.dispose]()
    throw explained
  }
}

function writeFile(node: Node, call: Call<'writeFile'>): Promise<{ sizeBytes: number }> {
  return withSandbox(node, call, async ({ guest, workdir, user }) => {
    const { path, mode, append = false, exclusive = false } = call.query
    const world = worldOf(call.query)
    const owner = await userIds(guest, world, user, call.signal)
    const options = {
      ...owner,
      parents: true,
      append,
      exclusive,
      ...(mode === undefined ? {} : { mode }),
    }
    const at = resolvePath(workdir, path)
    return await guest.files.write(world, at, call.body, options, wait(call))
  })
}

function worldOf({ world }: { readonly world?: 'main' | 'grade' | undefined }): string {
  return world ?? 'main'
}

function wait({ signal }: { readonly signal: AbortSignal }): { readonly signal: AbortSignal } {
  return { signal }
}

export function statView(stat: GuestFileStat): FileStat {
  const { kind, sizeBytes, mode, uid, gid, mtimeMs, target } = stat
  return {
    kind,
    sizeBytes,
    mode,
    uid,
    gid,
    mtimeMs,
    ...(target ? { target: Buffer.from(target).toString() } : {}),
  }
}

function entryView({ name, kind, sizeBytes, mode, mtimeMs }: GuestFileEntry): FileEntry {
  const bytes = Buffer.from(name)
  return {
    name: bytes.toString(),
    ...(isUtf8(bytes) ? {} : { nameBase64: bytes.toString('base64') }),
    kind,
    sizeBytes,
    mode,
    mtimeMs,
  }
}

async function* mapped<T, U>(values: AsyncIterable<T>, map: (value: T) => U): AsyncGenerator<U> {
  for await (const value of values) yield map(value)
}

/**
 * What tells a sandbox that may be copied from its copies: one small EROFS image each, in which there are `machine-id` and `seed`. It is a
 * mount of the sandbox's own specification, so a restored copy is given another one before anything in it runs: the runtime reads its files
 * from there, also those that a process holds open or mapped. For that every such image has the same layout, down to its first block.
 */
import { randomBytes } from 'node:crypto'
import { copyFile } from 'node:fs/promises'
import { ErofsImageFile } from '../image/erofs/image-file.ts'
import { newDirectory } from '../image/erofs/inode.ts'
import { RUNTIME_LIMITS } from '../limits.ts'

/** In the agent's root (agent-image.ts). */
export const IDENTITY_MOUNT = '/identity'
/** In a sandbox's own directory, and in that of a checkpoint. */
export const IDENTITY_FILE = 'identity'

const MACHINE_ID_BYTES = 16
const SEED_BYTES = 32
const METADATA = { mode: 0o444, uid: 0, gid: 0, mtimeSeconds: 0, mtimeNanoseconds: 0 }

/** A new one; or the image of a sandbox that goes on, from its checkpoint. */
export type IdentitySource = 'drawn' | { readonly kept: string }

export async function makeIdentityImage(path: string, from: IdentitySource): Promise<void> {
  if (from !== 'drawn') return await copyFile(from.kept, path)
  await using file = await ErofsImageFile.create(path, RUNTIME_LIMITS.identityImageBytesMax)
  const root = newDirectory()
  for (const [name, bytes] of [
    ['machine-id', MACHINE_ID_BYTES],
    ['seed', SEED_BYTES],
  ] as const) {
    const content = await file.appendContent(text(`${randomBytes(bytes).toString('hex')}\n`))
    root.children.set(name, { kind: 'file', ...METADATA, ...content })
  }
  await file.finish(root)
}

async function* text(content: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content)
}

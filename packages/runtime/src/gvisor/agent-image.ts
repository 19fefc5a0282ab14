import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ErofsImageFile } from '../image/erofs/image-file.ts'
import { newDirectory } from '../image/erofs/inode.ts'
import { LayerTree } from '../image/layer-tree.ts'
import { RUNTIME_LIMITS } from '../limits.ts'

/** Counts up when the tree below changes. */
const FORMAT = 4
const DIRECTORIES = [
  ...['proc', 'sys', 'dev', 'cg', 'run', 'stage', 'root', 'tmp', 'img'],
  ...['gofer', 'disk', 'disk/main', 'disk/grade', 'identity', 'given'],
]
const EPOCH = { uid: 0, gid: 0, mtimeSeconds: 0, mtimeNanoseconds: 0 }

/**
 * The root of every sandbox: the agent and its mount points in one EROFS image, built once for each agent binary.
 * Its name is the hash of what is in it, so that it never changes under a running sandbox.
 */
export async function agentImage(options: {
  readonly agent: string
  readonly dataDirectory: string
}): Promise<string> {
  const hash = createHash('sha256')
    .update(`${FORMAT}\n`)
    .update(await readFile(options.agent))
  const directory = join(options.dataDirectory, 'agent')
  const image = join(directory, `${hash.digest('hex').slice(0, 32)}.erofs`)
  if (await exists(image)) return image
  await mkdir(directory, { recursive: true })
  const part = `${image}.${randomUUID()}`
  try {
    await build(part, options.agent)
    await rename(part, image)
  } finally {
    await rm(part, { force: true })
  }
  return image
}

async function build(path: string, agent: string): Promise<void> {
  await using file = await ErofsImageFile.create(path, RUNTIME_LIMITS.agentImageBytesMax)
  const tree = new LayerTree()
  for (const name of DIRECTORIES) tree.put(name, newDirectory())
  // The root is read-only, so what layers are mounted on exists beforehand.
  for (let layer = 0; layer < RUNTIME_LIMITS.layersMax; layer++) {
    tree.put(`img/${layer}`, newDirectory())
  }
  // Over an empty /tmp the runtime would mount a tmpfs of its own.
  tree.put('tmp/.keep', { kind: 'file', mode: 0o444, ...EPOCH, block: 0, sizeBytes: 0 })
  const content = await file.appendContent(createReadStream(agent))
  tree.put('agent', { kind: 'file', mode: 0o755, ...EPOCH, ...content })
  await file.finish(tree.root)
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

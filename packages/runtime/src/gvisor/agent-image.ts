import { createHash } from 'node:crypto'
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { DriverError } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { run } from '../process/run.ts'

/** Counts up when the tree below changes. */
const FORMAT = 1
const DIRECTORIES = ['proc', 'sys', 'dev', 'cg', 'run', 'stage', 'root', 'tmp', 'img']
/** No extended attributes and no inlined tails: the runtime reads neither. The same agent gives the same bytes. */
const MKFS_FLAGS = ['--quiet', '-x-1', '-E', 'noinline_data', '--all-root', '-T', '0']
const UUID = ['-U', '5a4d107a-9e0b-4c55-8a0f-a6e27ba6e000']

/**
 * The root of every sandbox: the agent and its mount points in one EROFS image, built once for each agent binary.
 * Its name is the hash of what is in it, so that it never changes under a running sandbox.
 */
export async function agentImage(options: {
  readonly agent: string
  readonly dataDirectory: string
  readonly signal?: AbortSignal
}): Promise<string> {
  const hash = createHash('sha256')
    .update(`${FORMAT}\n`)
    .update(await readFile(options.agent))
  const directory = join(options.dataDirectory, 'agent')
  const image = join(directory, `${hash.digest('hex').slice(0, 32)}.erofs`)
  if (await exists(image)) return image
  await mkdir(directory, { recursive: true })
  const work = await mkdtemp(join(directory, 'build-'))
  try {
    await fill(join(work, 'tree'), options.agent)
    await pack(join(work, 'tree'), join(work, 'image'), options.signal)
    await rename(join(work, 'image'), image)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  return image
}

async function fill(tree: string, agent: string): Promise<void> {
  await mkdir(tree)
  for (const name of DIRECTORIES) await mkdir(join(tree, name))
  // The root is read-only, so what layers are mounted on exists beforehand.
  for (let layer = 0; layer < RUNTIME_LIMITS.layersMax; layer++) {
    await mkdir(join(tree, 'img', String(layer)))
  }
  // Over an empty /tmp the runtime would mount a tmpfs of its own.
  await writeFile(join(tree, 'tmp', '.keep'), '')
  await copyFile(agent, join(tree, 'agent'))
  await chmod(join(tree, 'agent'), 0o755)
}

async function pack(tree: string, image: string, signal: AbortSignal | undefined): Promise<void> {
  const outcome = await run('mkfs.erofs', [...MKFS_FLAGS, ...UUID, image, tree], {
    timeoutMs: RUNTIME_LIMITS.agentImageMs,
    ...(signal ? { signal } : {}),
  })
  if (outcome.exitCode === 0) return
  throw new DriverError(
    'create_failed',
    `the agent's image could not be built: ${outcome.problem}`,
    {
      hint: 'install erofs-utils 1.5 or newer: apt-get install erofs-utils',
      cause: outcome.stderr,
    },
  )
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

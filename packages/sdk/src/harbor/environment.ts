/** An `[environment]` table and its folder → what a sandbox is made of. */
import { join } from 'node:path'
import { type ResourcesInput, SandlotError } from '@sandlot/protocol'
import { refuseResources } from '../connection/refuse-early.ts'
import { tarOfDirectories } from '../image/copied-files.ts'
import { readDockerfile } from '../image/dockerfile/dockerfile.ts'
import { Image, type ImageDescription } from '../image/image.ts'
import type { TaskFolder } from './folder-files.ts'
import { SETTINGS_FILE } from './format.ts'
import { baselineNetwork } from './network.ts'
import type { Problems } from './problems.ts'
import type { EnvironmentSettings } from './settings.ts'
import type { HarborEnvironment } from './task.ts'
import { resolveVariables } from './variables.ts'

const MEBIBYTE = 2 ** 20
/** What is set aside for a sandbox, as everywhere: a task says what it may use at most. */
const MEMORY_REQUEST_BYTES = 20 * MEBIBYTE
const CPU_REQUEST = 0.1
const LOGS = ['logs', 'logs/agent', 'logs/artifacts', 'logs/verifier']

/** Used for each environment, and for each step. */
export const NO_HEALTHCHECK =
  'is not supported: nothing of an image is started by itself that could become healthy'
const COMPOSE_FILES = ['docker-compose.yaml', 'docker-compose.yml']

export interface EnvironmentOf {
  readonly settings: EnvironmentSettings
  /** Its table in `task.toml`. */
  readonly at: string
  /** What is built from: below the task's folder. */
  readonly context: string
  readonly folder: TaskFolder
  readonly given: Readonly<Record<string, string>>
  /** Build the Dockerfile also where the task names a built image. */
  readonly build: boolean
  /** Files beside no Dockerfile are put into the working directory. */
  readonly placesFiles: boolean
  readonly problems: Problems
}

/** Undefined where it can't be had, which `problems` has then. */
export async function environmentOf(of: EnvironmentOf): Promise<HarborEnvironment | undefined> {
  const { settings, at, given, problems } = of
  refuseUnsupported(of)
  const image = await imageOf(of)
  const env = resolveVariables(settings.env, { at: `${at}.env`, given, problems })
  const network = baselineNetwork(settings, at, problems)
  const resources = resourcesOf(of)
  if (image === undefined) return undefined
  const { workdir } = settings
  return {
    image: withLogs(image),
    resources,
    env,
    network,
    ...(workdir === undefined ? {} : { workdir }),
  }
}

/** Anybody may write there, as in the format's own containers. */
function withLogs(image: ImageDescription): ImageDescription {
  const files = { from: 'the folders for logs', tar: async () => tarOfDirectories(LOGS, 0o777) }
  return image.with({ kind: 'copy', files, to: '/' })
}

function refuseUnsupported({ settings, at, problems }: EnvironmentOf): void {
  const refuse = (field: string, problem: string) =>
    problems.add(SETTINGS_FILE, problem, `${at}.${field}`)
  const { os, gpus, tpu, mcp_servers: servers } = settings
  if (os !== undefined && os.toLowerCase() !== 'linux')
    refuse('os', `${os} can't run here: sandboxes are Linux`)
  if (gpus) refuse('gpus', 'sandboxes have no GPU')
  if (tpu !== undefined) refuse('tpu', 'sandboxes have no TPU')
  if (servers && servers.length > 0)
    refuse('mcp_servers', 'servers beside the sandbox are not supported')
  if (settings.healthcheck !== undefined) refuse('healthcheck', NO_HEALTHCHECK)
}

async function imageOf(of: EnvironmentOf): Promise<ImageDescription | undefined> {
  const { settings, at, context, folder, build, problems } = of
  for (const name of COMPOSE_FILES) {
    if (!(await folder.has(`${context}/${name}`))) continue
    problems.add(`${context}/${name}`, 'several containers for one task are not supported')
    return undefined
  }
  const dockerfile = `${context}/Dockerfile`
  if (!((await folder.isOwn(context)) && (await folder.isOwn(dockerfile)))) return undefined
  const hasDockerfile = await folder.has(dockerfile)
  const { docker_image: named } = settings
  if (named !== undefined && !(build && hasDockerfile)) {
    const image = Image.registry(named)
    // Beside a named image there is no recipe that would place them.
    const isBare = of.placesFiles && !hasDockerfile && (await folder.files(context)).length > 0
    return isBare ? image.copy(join(folder.directory, context), '.') : image
  }
  if (!hasDockerfile) {
    problems.add(dockerfile, `is missing, and ${at}.docker_image names no image`)
    return undefined
  }
  return await dockerfileImage(of, dockerfile)
}

/** Read once already: what it holds that isn't supported is wanted before anything begins. */
async function dockerfileImage(
  { settings, folder, problems }: EnvironmentOf,
  name: string,
): Promise<ImageDescription | undefined> {
  const path = join(folder.directory, name)
  const options = { timeout: settings.build_timeout_sec * 1000 }
  try {
    await readDockerfile(path, options, () => {})
    return Image.dockerfile(path, options)
  } catch (error) {
    if (!(error instanceof SandlotError)) throw error
    problems.add(name, error.message)
    return undefined
  }
}

function resourcesOf({ settings, at, problems }: EnvironmentOf): ResourcesInput {
  const { cpus } = settings
  const memory = mebibytes(settings.memory_mb, settings.memory)
  const storage = mebibytes(settings.storage_mb, settings.storage)
  const input: ResourcesInput = {
    ...(cpus === undefined ? {} : { cpu: { request: Math.min(CPU_REQUEST, cpus), limit: cpus } }),
    ...(memory === undefined
      ? {}
      : { memory: { request: Math.min(MEMORY_REQUEST_BYTES, memory), limit: memory } }),
    ...(storage === undefined ? {} : { disk: storage }),
  }
  try {
    refuseResources(input)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    problems.add(SETTINGS_FILE, error.message, at)
  }
  return input
}

const SHORT_UNITS: Readonly<Record<string, number>> = { k: 1 / 1024, m: 1, g: 1024 }

/** In bytes. The older way to write it wins, as in the format. */
function mebibytes(count: number | undefined, short: string | undefined): number | undefined {
  const [, digits, unit = ''] = /^\s*([\d.]+)\s*([kmg])\s*$/i.exec(short ?? '') ?? []
  const all =
    digits === undefined
      ? count
      : Math.trunc(Number(digits) * (SHORT_UNITS[unit.toLowerCase()] ?? 1))
  return all === undefined ? undefined : all * MEBIBYTE
}

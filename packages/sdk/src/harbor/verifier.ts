/** A `[verifier]` table and the tests → how a task, or one of its steps, is graded. */
import { environmentOf } from './environment.ts'
import { SETTINGS_FILE, TEST_SCRIPT } from './format.ts'
import { phaseNetwork } from './network.ts'
import type { TaskReading } from './read-task.ts'
import type { PhaseSettings, Settings, VerifierSettings } from './settings.ts'
import type { HarborArtifacts, HarborFile, HarborPhase, HarborVerifier } from './task.ts'
import { resolveVariables } from './variables.ts'

const TIMEOUT_DEFAULT_SECONDS = 600
/** What an agent puts there is given to a verifier that runs elsewhere. */
const PUBLISHED = '/logs/artifacts'

export interface VerifierOf {
  readonly settings: VerifierSettings
  readonly at: string
  /** Folders with its tests; of two files of one name the later one is taken. */
  readonly folders: readonly string[]
  readonly artifacts: Settings['artifacts']
  readonly artifactsAt: string
}

export async function verifierOf(
  reading: TaskReading,
  { settings, at, folders, artifacts, artifactsAt }: VerifierOf,
): Promise<HarborVerifier> {
  const { problems, folder, given } = reading
  if (settings.collect && settings.collect.length > 0) {
    problems.add(SETTINGS_FILE, 'commands before the verifier are not supported', `${at}.collect`)
  }
  const files = new Map<string, HarborFile>()
  for (const name of folders) {
    for (const file of await folder.files(name)) files.set(file.name, file)
  }
  const passed = artifactsOf(reading, artifacts, artifactsAt)
  const separate = await separateOf(reading, { settings, at, folders })
  if (separate === undefined && !files.has(TEST_SCRIPT)) {
    problems.add(`${folders.at(-1)}/${TEST_SCRIPT}`, 'is missing: nothing grades the task')
  }
  return {
    ...phaseOf(reading, settings, at),
    timeoutMs: (settings.timeout_sec ?? TIMEOUT_DEFAULT_SECONDS) * 1000,
    env: resolveVariables(settings.env, { at: `${at}.env`, given, problems }),
    files: [...files.values()],
    ...(separate === undefined ? {} : { separate: { environment: separate, artifacts: passed } }),
  }
}

/** User and network of a phase. */
export function phaseOf(
  { problems }: TaskReading,
  settings: PhaseSettings & { readonly timeout_sec?: number | undefined },
  at: string,
): HarborPhase {
  const network = phaseNetwork(settings, at, problems)
  const { user, timeout_sec: seconds } = settings
  return {
    ...(seconds === undefined ? {} : { timeoutMs: seconds * 1000 }),
    ...(user === undefined ? {} : { user: String(user) }),
    ...(network === undefined ? {} : { network }),
  }
}

async function separateOf(
  reading: TaskReading,
  { settings, at, folders }: Pick<VerifierOf, 'settings' | 'at' | 'folders'>,
) {
  const { environment_mode: mode, environment: own } = settings
  const { problems, folder, settings: all } = reading
  if (mode === 'shared' && own) {
    problems.add(
      SETTINGS_FILE,
      `"shared", and yet there is ${at}.environment`,
      `${at}.environment_mode`,
    )
  }
  if (mode !== 'separate' && !own) return undefined
  return await environmentOf({
    ...reading,
    folder,
    settings: own ?? all.environment,
    at: own ? `${at}.environment` : 'environment',
    context: folders.at(-1) ?? '',
    placesFiles: false,
  })
}

function artifactsOf(
  { problems }: TaskReading,
  artifacts: Settings['artifacts'],
  at: string,
): HarborArtifacts {
  const found = new Map([[PUBLISHED, { path: PUBLISHED, exclude: [] as readonly string[] }]])
  for (const [index, artifact] of artifacts.entries()) {
    const entry = typeof artifact === 'string' ? { source: artifact } : artifact
    const field = `${at}[${index}]`
    if (entry.service !== undefined && entry.service !== 'main') {
      problems.add(
        SETTINGS_FILE,
        `there is no service ${entry.service}: a task has one sandbox`,
        field,
      )
    } else if (!entry.source.startsWith('/')) {
      problems.add(SETTINGS_FILE, `${entry.source} is no absolute path`, field)
    } else found.set(entry.source, { path: entry.source, exclude: entry.exclude ?? [] })
  }
  return [...found.values()]
}

/** One step of a task in the hands of a worker: what it needs is brought, the agent works, the verifier looks. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  formatDuration,
  type NetworkPolicy,
  SandlotError,
  TIMEOUT_DEFAULTS_MS,
} from '@sandlot/protocol'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { Sandboxes } from '../sandbox/sandboxes.ts'
import { TEST_SCRIPT } from './format.ts'
import { policyOf } from './network.ts'
import {
  agentCommand,
  GRADE_COMMAND,
  type HarborAgent,
  placeOf,
  REWARD_FILES,
  TESTS,
  VERDICTS,
} from './places.ts'
import { parseRewards, type Rewards } from './rewards.ts'
import type { HarborFile, HarborStep, HarborTask } from './task.ts'

const SETUP_SCRIPT = 'setup.sh'
/** As where the daemon grades. */
const VERDICT_CHARS_MAX = 64 * 2 ** 10

export interface StepRun {
  readonly task: HarborTask
  readonly step: Omit<HarborStep, 'minReward'>
  readonly agent: HarborAgent
  readonly open: NetworkPolicy
  readonly sandbox: Sandbox
  /** For verifiers in an environment of their own. */
  readonly sandboxes: Pick<Sandboxes, 'create'>
  readonly signal: AbortSignal
}

/** What its verifier gave. @throws Error where something of the task failed: that is no zero */
export async function runStep(run: StepRun): Promise<Rewards> {
  await prepare(run)
  await work(run)
  const { separate } = run.step.verifier
  if (!separate) return await verify(run, run.sandbox)
  const { environment, artifacts } = separate
  await using sandbox = await run.sandboxes.create({
    from: environment.image,
    resources: environment.resources,
    network: policyOf(run.step.verifier.network ?? environment.network, run.open),
    signal: run.signal,
  })
  for (const { path } of artifacts) await pass(run.sandbox, sandbox, path, run.signal)
  await sandbox.files.changeMode(`${TESTS}/${TEST_SCRIPT}`, 0o755, { signal: run.signal })
  // What an agent left to be taken for a verdict may have come along.
  await sandbox.files.remove(VERDICTS, { recursive: true, force: true, signal: run.signal })
  return await verify({ ...run, task: { ...run.task, environment } }, sandbox, { brings: false })
}

async function prepare({ task, step, sandbox, signal }: StepRun): Promise<void> {
  if (step.workdir.length === 0) return
  const workdir = task.environment.workdir ?? (await sandbox.exec('pwd', { signal })).stdout.trim()
  await bring(sandbox, step.workdir, workdir, signal)
  if (!step.workdir.some(({ name }) => name === SETUP_SCRIPT)) return
  const end = await sandbox.exec(
    ['/bin/sh', '-c', `exec "$(command -v bash || echo /bin/sh)" ${SETUP_SCRIPT}`],
    {
      ...{ cwd: workdir, env: { ...task.environment.env }, signal },
      ...(step.agent.user === undefined ? {} : { user: step.agent.user }),
    },
  )
  if (end.exitCode !== 0)
    throw failed(step, `${SETUP_SCRIPT} ended with ${end.exitCode}`, end.stderr)
}

/** One that uses up its time is graded as it stands. */
async function work({ task, step, agent, sandbox, signal }: StepRun): Promise<void> {
  const { command = [], env = {}, files = {} } = agentCommand({ ...task, ...step }, agent)
  for (const [path, content] of Object.entries(files)) {
    if (typeof content === 'string') await sandbox.files.write(path, content, { signal })
    else if ('path' in content) await bringOne(sandbox, content.path, path, signal)
  }
  await sandbox.exec(command, {
    ...{ env, ...placeOf(task, step.agent), signal },
    timeout: step.agent.timeoutMs ?? TIMEOUT_DEFAULTS_MS.agent,
  })
}

async function verify(
  { task, step, signal }: StepRun,
  sandbox: Sandbox,
  { brings = true } = {},
): Promise<Rewards> {
  const { verifier } = step
  if (brings) {
    for (const path of [TESTS, VERDICTS]) {
      await sandbox.files.remove(path, { recursive: true, force: true, signal })
    }
    await bring(sandbox, verifier.files, TESTS, signal)
  }
  const end = await sandbox.exec(GRADE_COMMAND, {
    env: { ...task.environment.env, ...verifier.env },
    ...{ ...placeOf(task, verifier), timeout: verifier.timeoutMs, signal },
  })
  if (end.timedOut) {
    throw failed(step, `its verifier did not end within ${formatDuration(verifier.timeoutMs)}`)
  }
  for (const path of REWARD_FILES) {
    const text = await textOf(sandbox, path, signal)
    if (text === undefined) continue
    try {
      return parseRewards(text)
    } catch (error) {
      throw failed(step, `${path}: ${(error as Error).message}`)
    }
  }
  throw failed(
    step,
    `its verifier left no ${REWARD_FILES.join(' nor ')}, and ended with ${end.exitCode}`,
    end.stderr,
  )
}

async function textOf(sandbox: Sandbox, path: string, signal: AbortSignal) {
  try {
    const text = await sandbox.files.readText(path, { length: VERDICT_CHARS_MAX + 1, signal })
    if (text.length <= VERDICT_CHARS_MAX) return text
    throw new Error(`${path} has more than ${VERDICT_CHARS_MAX} characters`)
  } catch (error) {
    if (error instanceof SandlotError && error.code === 'file_not_found') return undefined
    throw error
  }
}

/** From one sandbox to another one, by way of this machine; what isn't there is not missed. */
async function pass(from: Sandbox, to: Sandbox, path: string, signal: AbortSignal): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-artifact-'))
  try {
    const local = join(directory, 'content')
    await from.files.download(path, local, { signal })
    await to.files.upload(local, path, { signal })
  } catch (error) {
    if (!(error instanceof SandlotError && error.code === 'file_not_found')) throw error
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function bring(
  sandbox: Sandbox,
  files: readonly HarborFile[],
  place: string,
  signal: AbortSignal,
): Promise<void> {
  for (const { name, path } of files) await bringOne(sandbox, path, `${place}/${name}`, signal)
}

/** Scripts can be run, whatever they could on this machine. */
async function bringOne(sandbox: Sandbox, local: string, path: string, signal: AbortSignal) {
  await sandbox.files.upload(local, path, { signal })
  await sandbox.files.changeMode(path, 0o755, { signal })
}

function failed({ name }: Pick<HarborStep, 'name'>, what: string, said = ''): Error {
  const where = name === '' ? '' : `step ${name}: `
  return new Error(`${where}${what}${said.trim() === '' ? '' : `: ${said.trim().slice(-500)}`}`)
}

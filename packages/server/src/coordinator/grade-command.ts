/** The run of one grade command, in the world that shows it what it may see. */
import { isCurrent } from '@sandlot/core'
import {
  type Artifact,
  argvOf,
  type ErrorCode,
  OUTPUT_ARTIFACTS,
  type RewardSource,
  SandlotError,
} from '@sandlot/protocol'
import { lastWords } from '../node/ended-how.ts'
import type { GraderWorld } from '../node/port.ts'
import { execId } from './ids.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import { type RunGrade, type Terms, termsOf } from './own-terms.ts'
import { keepOutput } from './programs/output.ts'
import { taskFile, toldOf } from './programs/told.ts'
import { type EffectOf, hasPolicies, leftMs, type SandboxWork } from './sandboxes.ts'
import { BY_EXIT, readVerdict, type Verdict } from './verdict.ts'

export interface Graded {
  readonly verdict: Verdict | Late
  readonly artifacts: readonly Artifact[]
}

/** It did not end in its time. `said`: the last that it printed. */
export interface Late {
  readonly kind: 'late'
  readonly said: string
}

export type NoVerdict = Extract<Verdict, { kind: 'none' }>

type StartGrade = EffectOf<'start_grade'>
type World = 'main' | GraderWorld

/** `begun`: told before the command starts, so that it can be ended. Undefined where nobody wants it any more. */
export async function runGrade(
  work: SandboxWork,
  effect: StartGrade,
  where: World,
  begun: (effect: StartGrade, command: { sandbox: string; exec: string }) => void,
): Promise<Graded | undefined> {
  const { record, actor, tasks, node, clock, signal } = work
  const { sandbox } = effect
  const terms = termsOf(record.specification, await tasks.loadOwn(effect.own))
  const spec = terms.grade as RunGrade
  const { reward = BY_EXIT } = spec
  // An image of its own is shown in a world of its own.
  const world = spec.from !== undefined && where === 'main' ? 'grade' : where
  const exec = execId(record.id, effect.token, world === 'control' ? 1 : 0)
  // What it takes to begin is not the grader's time; core waits a while longer, and then it is the platform that was late.
  const timeoutMs = leftMs(clock, effect.dueMs)
  try {
    await openWorld(work, sandbox, world, terms)
    await bring(work, effect, { world, exec, terms })
    if (!isCurrent(actor.run, effect)) return undefined
    if (effect.dueMs <= clock.now() && !(await node.hasExec({ sandbox, exec }, { signal }))) {
      throw new SandlotError('timeout', 'the time for the grade was over before it could begin')
    }
    begun(effect, { sandbox, exec })
    const end = await node.exec(requestOf(work, effect, { world, exec, terms, timeoutMs }), {
      signal,
    })
    const { verdictBytes: bytesMax } = COORDINATOR_LIMITS
    const verdict = end.timedOut
      ? ({ kind: 'late', said: lastWords(end) } as const)
      : await readVerdict(reward, end, {
          who: 'the grade command',
          read: (path) => node.readFile({ sandbox, world, path, bytesMax }, { signal }),
        })
    return { verdict, artifacts: terms.program ? await keepOutput(work, end, OUTPUT) : [] }
  } catch (error) {
    // Anything but the files in its way is no word about the grader.
    if (!isByFiles(error)) throw error
    const cause = `the grade command could not be run: ${error.message}`
    return { verdict: { kind: 'none', cause }, artifacts: [] }
  }
}

/** Opens the world in which is graded, in the phase `grade`. */
export async function openWorld(
  { record, node, signal }: SandboxWork,
  sandbox: string,
  world: World,
  { network, grade }: Pick<Terms, 'network' | 'grade'>,
): Promise<void> {
  const wait = { signal, timeoutMs: COORDINATOR_LIMITS.gradeOpenMs }
  if (world !== 'main') {
    const image = grade?.kind === 'command' ? grade.from : undefined
    const alone = world === 'control' || record.specification.grade?.in === 'clean'
    const shows = image === undefined ? (alone ? 'image' : 'main') : { image }
    await node.openGradeWorld({ sandbox, world, shows }, wait)
  }
  if (hasPolicies(network)) await node.enterPhase({ sandbox, phase: 'grade', world }, wait)
}

interface Command {
  readonly world: World
  readonly exec: string
  readonly terms: Terms
}

/** What it needs, and nothing where its verdict will be: what the episode left there is none. */
async function bring(
  { node, tasks, signal }: SandboxWork,
  effect: StartGrade,
  { world, exec, terms }: Command,
): Promise<void> {
  const { sandbox } = effect
  const { files: own = [], clear = [], reward, pass = [] } = terms.grade as RunGrade
  const remove = pathsOf(reward)
  const passed = world === 'grade' ? pass : []
  const files = terms.program ? [await taskFile(tasks, effect), ...own] : own
  if (passed.length + files.length + remove.length + clear.length === 0) return
  // One that an earlier daemon began reads its files, and has written its verdict perhaps.
  if (await node.hasExec({ sandbox, exec }, { signal })) return
  const wait = { signal, timeoutMs: COORDINATOR_LIMITS.gradeOpenMs }
  if (world === 'grade' && passed.length > 0) {
    await node.passFiles({ sandbox, world, paths: passed }, wait)
  }
  if (files.length + remove.length + clear.length === 0) return
  await node.putFiles({ sandbox, world, files, ...gone(remove, clear) }, wait)
}

function requestOf(
  { record, actor }: SandboxWork,
  effect: StartGrade,
  { world, exec, terms, timeoutMs }: Command & { readonly timeoutMs: number },
) {
  const { command, env, cwd, user, reward, from } = terms.grade as RunGrade
  const isKept = terms.program !== undefined || reward?.from === 'stdout'
  return {
    ...{ sandbox: effect.sandbox, world, exec, argv: argvOf(command) },
    env: { ...env, ...(terms.program ? toldOf(actor.run, record.name, effect) : {}) },
    ...(from === undefined ? {} : { image: from }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
    timeoutMs,
    headBytes: isKept ? COORDINATOR_LIMITS.outputHeadBytes : 0,
    tailBytes: isKept ? COORDINATOR_LIMITS.outputTailBytes : COORDINATOR_LIMITS.commandTailBytes,
  }
}

const OUTPUT = { stdout: OUTPUT_ARTIFACTS.gradeStdout, stderr: OUTPUT_ARTIFACTS.gradeStderr }

/** Where a verdict will be, as a file. */
export function pathsOf(reward: RewardSource | undefined): readonly string[] {
  return reward?.from === 'file' ? reward.paths : []
}

/** Paths where nothing of before is left. */
export function gone(remove: readonly string[], clear: readonly string[] = []) {
  return {
    ...(remove.length > 0 ? { remove } : {}),
    ...(clear.length > 0 ? { clear } : {}),
  }
}

/** Refusals that files can bring about; never a lost sandbox, a timeout or a fault of the daemon. */
export function isByFiles(error: unknown): error is SandlotError {
  return error instanceof SandlotError && BY_FILES.has(error.code)
}

const BY_FILES: ReadonlySet<ErrorCode> = new Set([
  'exec_failed',
  'file_not_found',
  'file_is_directory',
  'file_not_directory',
  'file_not_regular',
  'file_exists',
  'file_failed',
  'directory_not_empty',
  'permission_denied',
  'no_space',
])

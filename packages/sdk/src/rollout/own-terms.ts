/** What a task of a run of programs has of its own, as it travels. */
import type { TaskPutInput } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { type ImageLike, resolveImage } from '../image/resolve.ts'
import { broughtFiles, commandOf, rewardOf } from './brought.ts'
import type { CommandGrade, RunOptions } from './options.ts'
import type {
  GradedElsewhere,
  Program,
  ProgramStep,
  StepGrade,
  TaskGrade,
  TaskOptions,
} from './program-options.ts'
import type { TaskNaming } from './task-put.ts'

export type OwnTerms = Pick<
  TaskPutInput,
  'from' | 'timeout' | 'resources' | 'network' | 'secrets' | 'program' | 'grade' | 'quarantine'
>

type OwnTermsOf = (own: TaskOptions, waiting: Waiting) => Promise<OwnTerms>

/** Builds what tasks start from, each description once. */
function ownTerms(
  context: ClientContext,
  { onLog }: Pick<RunOptions<unknown>, 'onLog'>,
): OwnTermsOf {
  const built = new Map<ImageLike, Promise<string>>()

  function start(from: ImageLike, waiting: Waiting): Promise<string> {
    const before = built.get(from)
    if (before) return before
    const options = { ...waiting, ...(onLog ? { onLog } : {}) }
    const building = resolveImage(context, from, options)
    built.set(from, building)
    return building
  }

  return async (own, waiting) => {
    refuseUnknown(own, OPTIONS)
    const { from, timeout, resources, network, secrets, command, grade, quarantine } = own
    const { env, files, cwd, user, steps, rewards } = own
    const program = {
      ...(await ownCommand(context, { run: command, env, files, cwd, user }, waiting)),
      ...(steps === undefined ? {} : { steps: await stepsOf(steps, { context, start, waiting }) }),
      ...(rewards === undefined ? {} : { rewards }),
    }
    return {
      ...(from === undefined ? {} : { from: await start(from, waiting) }),
      ...(timeout === undefined ? {} : { timeout }),
      ...(resources === undefined ? {} : { resources }),
      ...(network === undefined ? {} : { network }),
      ...(secrets === undefined ? {} : { secrets }),
      ...(Object.keys(program).length > 0 ? { program } : {}),
      ...(grade === undefined ? {} : { grade: await ownGrade(grade, { context, start, waiting }) }),
      ...(quarantine === undefined ? {} : { quarantine }),
    }
  }
}

/** Tasks as they are named, with what each has of its own. */
export function programNaming<Task>(
  context: ClientContext,
  options: Pick<Program<Task>, 'each'> &
    Partial<Pick<Program<Task>, 'content'>> &
    Pick<RunOptions<Task>, 'onLog'>,
  { naming, signal }: { readonly naming: TaskNaming<Task>; readonly signal: AbortSignal },
): TaskNaming<Task> {
  const { each, content } = options
  const own = ownTerms(context, options)
  const ownOf =
    each && (async (task: Task, index: number) => own(await each(task, index), { signal }))
  return { ...naming, content, ...(ownOf ? { own: ownOf } : {}) }
}

const OPTIONS = [
  ...(['from', 'timeout', 'resources', 'network', 'secrets', 'command'] as const),
  ...(['env', 'files', 'cwd', 'user', 'grade', 'quarantine', 'steps', 'rewards'] as const),
]

async function ownGrade(grade: TaskGrade, { context, start, waiting }: Sending) {
  refuseUnknown(grade, [...COMMAND, ...ELSEWHERE])
  return {
    ...(await ownCommand(context, grade, waiting)),
    ...(await elsewhere(grade, start, waiting)),
  }
}

async function elsewhere({ from, pass }: GradedElsewhere, start: StartOf, waiting: Waiting) {
  return {
    ...(from === undefined ? {} : { from: await start(from, waiting) }),
    ...(pass === undefined ? {} : { pass: [...pass] }),
  }
}

const COMMAND = ['run', 'files', 'clear', 'env', 'cwd', 'user'] as const
const ELSEWHERE = ['from', 'pass'] as const

type StartOf = (from: ImageLike, waiting: Waiting) => Promise<string>

interface Sending {
  readonly context: ClientContext
  readonly start: StartOf
  readonly waiting: Waiting
}

async function stepsOf(steps: readonly ProgramStep[], sending: Sending) {
  const sent: NonNullable<NonNullable<TaskPutInput['program']>['steps']> = []
  for (const step of steps) sent.push(await stepOf(step, sending))
  return sent
}

async function stepOf(step: ProgramStep, sending: Sending) {
  refuseUnknown(step, [...COMMAND, 'name', 'prepare', 'timeout', 'grade', 'least'])
  const { context, waiting } = sending
  const { name, run, prepare, timeout, grade, least } = step
  return {
    ...(await ownCommand(context, step, waiting)),
    ...{ name, command: commandOf(run) },
    ...(prepare === undefined ? {} : { prepare: commandOf(prepare) }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(grade === undefined ? {} : { grade: await stepGrade(grade, sending) }),
    ...(least === undefined ? {} : { least: { ...least } }),
  }
}

async function stepGrade(grade: StepGrade, { context, start, waiting }: Sending) {
  refuseUnknown(grade, [...COMMAND, ...ELSEWHERE, 'reward', 'timeout'])
  const { run, reward, timeout } = grade
  return {
    ...(await ownCommand(context, grade, waiting)),
    ...(await elsewhere(grade, start, waiting)),
    ...{ command: commandOf(run), ...rewardOf(reward) },
    ...(timeout === undefined ? {} : { timeout }),
  }
}

type OwnCommand = {
  [K in 'run' | 'files' | 'clear' | 'env' | 'cwd' | 'user']?: CommandGrade[K] | undefined
}

async function ownCommand(context: ClientContext, own: OwnCommand, waiting: Waiting) {
  const { run, files, clear, env, cwd, user } = own
  return {
    ...(run === undefined ? {} : { command: commandOf(run) }),
    ...(env === undefined ? {} : { env }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
    ...(clear === undefined ? {} : { clear: [...clear] }),
    ...(await broughtFiles(context, files, waiting)),
  }
}

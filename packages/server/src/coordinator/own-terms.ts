import type { OwnTerms } from '@sandlot/core'
import {
  completeResources,
  type OwnCommand,
  type OwnGrade,
  type OwnProgram,
  type ProgramSpec,
  type Resources,
  SandlotError,
  type TaskPut,
} from '@sandlot/protocol'
import { defined } from '../defined.ts'
import { startOf } from '../sandboxes/start-of.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import type { RunMemory, TaskRequest } from './port.ts'
import { type StepTimes, stepsMs } from './programs/step-times.ts'
import type { CommandGrade, Specification } from './specification.ts'

/** What one episode's sandboxes are made of and what is run in them: the run's, with what its task has of its own. */
export interface Terms
  extends Pick<
    Specification,
    'image' | 'memory' | 'resources' | 'network' | 'secrets' | 'env' | 'workdir' | 'user'
  > {
  readonly grade: RunGrade | Exclude<Specification['grade'], CommandGrade>
  readonly program?: RunProgram
  /** Why nothing is to be made or run. */
  readonly quarantine?: string
}

/** A grade command, and the image whose world it runs in where that is another one. */
export type RunGrade = CommandGrade & Pick<OwnGrade, 'from' | 'pass'>

/** A program, or the steps that stand in its place. */
export type RunProgram = ProgramSpec & Pick<OwnSteps, 'steps' | 'rewards' | 'times'>

/** `times`: of the phases that its steps would be by themselves. */
type OwnSteps = OwnProgram & { readonly times?: StepTimes }

/** What of them is the task's own, complete in itself. Stored with the task. */
interface Own extends Partial<Pick<Terms, 'resources' | 'network' | 'secrets' | 'quarantine'>> {
  readonly start?: OwnStartPoint
  readonly program?: OwnSteps
  readonly grade?: OwnGrade
}

interface OwnStartPoint extends Pick<Terms, 'image' | 'env' | 'workdir' | 'user'> {
  readonly imageDigest: string
  readonly memory?: RunMemory
}

/** A task's own terms, as core carries them and as they are stored; undefined where it has none. */
export interface TaskTerms extends Pick<OwnTerms, 'from' | 'timeoutMs'> {
  readonly own: Own | undefined
  /** Ids of the images in which it is graded. */
  readonly graderImages: readonly string[]
  /** What two tasks with the same content differ in. */
  readonly identity: unknown
}

/**
 * What a task has of its own, checked against its run.
 * @throws SandlotError `image_unknown`, `invalid_request`, `too_large`
 */
export async function taskTermsOf(
  specification: Specification,
  task: TaskRequest,
  imageDigest: (image: string) => Promise<string | undefined>,
): Promise<TaskTerms | undefined> {
  const { program, grade, timeout, resources, network, secrets, start, quarantine } = task
  if (!(program || grade || timeout || resources || network || secrets || start || quarantine))
    return undefined
  refuseNeedless(specification, task)
  const byDigest = await digestsOf(task, imageDigest)
  const own = {
    ...(await ownStart(specification, task, imageDigest)),
    ...(network ? { network } : {}),
    ...(secrets ? { secrets } : {}),
    ...(program ? { program: withTimes(specification, program, timeout) } : {}),
    ...(grade ? { grade } : {}),
    ...(quarantine ? { quarantine } : {}),
  }
  const sizeBytes = Buffer.byteLength(JSON.stringify(own))
  if (sizeBytes > COORDINATOR_LIMITS.ownTermsBytes) {
    throw new SandlotError(
      'too_large',
      `what the task ${shown(task)} has of its own takes ${sizeBytes} bytes; at most ${COORDINATOR_LIMITS.ownTermsBytes} are kept`,
      { hint: 'Bring large files into the image, and fewer of them with the task.' },
    )
  }
  const { image: _, ...from } = own.start ?? {}
  const timeoutMs = ownTimes(own.program, timeout)
  return {
    ...(own.start ? { from: own.start.imageDigest } : {}),
    ...(timeoutMs ? { timeoutMs } : {}),
    own: Object.keys(own).length === 0 ? undefined : own,
    graderImages: [...byDigest.keys()],
    identity: {
      ...own,
      ...(own.start ? { start: from } : {}),
      ...(byDigest.size > 0 ? { graded: [...byDigest.values()] } : {}),
      timeout,
    },
  }
}

/** Of images in which it is graded, in the order in which they are named. @throws SandlotError `image_unknown` */
async function digestsOf(
  { program, grade }: TaskRequest,
  imageDigest: (image: string) => Promise<string | undefined>,
): Promise<ReadonlyMap<string, string>> {
  const digests = new Map<string, string>()
  for (const each of [grade, ...(program?.steps ?? []).map((step) => step.grade)]) {
    if (each?.from === undefined) continue
    const digest = await imageDigest(each.from)
    if (digest === undefined) {
      throw new SandlotError('image_unknown', `there is no image ${each.from}`)
    }
    digests.set(each.from, digest)
  }
  return digests
}

function withTimes(
  { timeoutMs }: Specification,
  program: OwnProgram,
  timeout: TaskRequest['timeout'],
): OwnSteps {
  if (program.steps === undefined) return program
  const { setup, agent, grade } = { ...timeoutMs, ...(timeout ? defined(timeout) : {}) }
  return { ...program, times: { setup, agent, grade } }
}

/** The agent of steps has their times together. */
function ownTimes(
  program: OwnSteps | undefined,
  timeout: TaskRequest['timeout'],
): TaskTerms['timeoutMs'] {
  const own = timeout ? defined(timeout) : undefined
  if (!program?.steps || !program.times) return own
  return { ...own, agent: stepsMs(program.steps, program.times) }
}

/** The terms of an episode. `stored`: what its task has of its own, as text. */
export function termsOf(specification: Specification, stored: string | null): Terms {
  if (stored === null) return specification
  const own = JSON.parse(stored) as Own
  const { start, resources, network, secrets, program, grade, quarantine } = own
  const { program: runs, grade: grades } = specification
  const { memory: _, ...more } = specification
  return {
    ...(start ? { ...more, ...start } : specification),
    ...(resources ? { resources } : {}),
    ...(network ? { network } : {}),
    ...(secrets ? { secrets } : {}),
    ...(runs ? { program: withOwn<RunProgram>(runs, program) } : {}),
    grade: grades?.kind === 'command' ? withOwn<RunGrade>(grades, grade) : grades,
    ...(quarantine ? { quarantine } : {}),
  }
}

/** The task's in the place of the run's; variables and files are added, and the task's own stand where both have one. */
function withOwn<T extends OwnCommand>(runs: T, own: OwnCommand | undefined): T {
  if (own === undefined) return runs
  const paths = new Set(own.files?.map(({ path }) => path))
  const files = [...(runs.files ?? []).filter(({ path }) => !paths.has(path)), ...(own.files ?? [])]
  const env = { ...runs.env, ...own.env }
  return {
    ...runs,
    ...defined(own),
    ...(Object.keys(env).length > 0 ? { env } : {}),
    ...(files.length > 0 ? { files } : {}),
  }
}

async function ownStart(
  specification: Specification,
  { start, resources }: TaskRequest,
  imageDigest: (image: string) => Promise<string | undefined>,
): Promise<Pick<Own, 'start' | 'resources'>> {
  if (start === undefined) {
    return resources ? { resources: withOwnResources(specification, resources) } : {}
  }
  const { ifIncompatible } = specification
  const wishes = {
    env: specification.env,
    ...(specification.workdir === null ? {} : { workdir: specification.workdir }),
    ...(specification.user === null ? {} : { user: specification.user }),
    ...(ifIncompatible ? { ifIncompatible } : {}),
    ...(resources ? { resources } : {}),
  }
  const { checkpoint, coldInstead, onRestore, ...started } = startOf(start, wishes)
  const digest = await imageDigest(started.image)
  if (digest === undefined) {
    throw new SandlotError('image_unknown', `there is no image ${started.image}`)
  }
  const memory = defined({ checkpoint, coldInstead, onRestore })
  return {
    start: {
      image: started.image,
      imageDigest: digest,
      env: started.env ?? {},
      workdir: started.workdir ?? null,
      user: started.user ?? null,
      ...(checkpoint === undefined ? {} : { memory }),
    },
    resources:
      checkpoint === undefined
        ? withOwnResources(specification, { ...start.resources, ...resources })
        : started.resources,
  }
}

/** A disk that follows from the memory follows from the task's own. */
function withOwnResources(
  { resources: runs }: Specification,
  own: NonNullable<TaskPut['resources']>,
): Resources {
  const { disk, ...rest } = runs
  const follows = completeResources(rest).disk === disk && own.memory !== undefined
  return completeResources({ ...(follows ? rest : runs), ...defined(own) })
}

function refuseNeedless({ program, grade, env }: Specification, task: TaskRequest): void {
  const shadowed = Object.keys(task.secrets ?? {}).find((variable) => Object.hasOwn(env, variable))
  const wrong =
    task.program && !program
      ? 'a program, and the run has none: it is run by workers'
      : (task.grade || task.program?.steps) && grade?.kind !== 'command'
        ? `${task.grade ? 'a grade of its own' : 'steps'}, and the run has no grade command`
        : shadowed !== undefined
          ? `a secret in ${shadowed}, which the run sets in its env`
          : undefined
  if (wrong === undefined) return
  throw new SandlotError('invalid_request', `the task ${shown(task)} has ${wrong}`)
}

function shown({ key }: Pick<TaskPut, 'key'>): string {
  return JSON.stringify(key.slice(0, 80))
}

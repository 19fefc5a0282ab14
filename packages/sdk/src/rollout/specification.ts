/** From the options of a run to the run's specification on the wire. */
import {
  type GradeSpec,
  type RunAttachInput,
  type RunCreateInput,
  runCreate,
  SandlotError,
} from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { refuseEarly, refuseResources } from '../connection/refuse-early.ts'
import { RemoteFunction } from '../function/remote-function.ts'
import { type ImageLike, isDescribed, resolveImage } from '../image/resolve.ts'
import { broughtFiles, commandGrade, commandOf, rewardOf } from './brought.ts'
import {
  type AttachOptions,
  CONCURRENCY_DEFAULT,
  type CommandGrade,
  type FunctionGrade,
  type FunctionRunOptions,
  type GroupOptions,
  isContainerGrade,
  isFunctionGrade,
  type MapOptions,
} from './options.ts'
import type { ProgramOptions } from './program-options.ts'

/** Of a run whose episodes this process runs. */
export async function workerSpecification<Task>(
  context: ClientContext,
  name: string,
  { each: _, ...options }: MapOptions<Task>,
): Promise<RunCreateInput> {
  return await specificationOf(context, name, options, { kind: 'worker' })
}

/** Of a run of programs. */
export async function programSpecification<Task>(
  context: ClientContext,
  name: string,
  given: ProgramOptions<Task>,
): Promise<RunCreateInput> {
  const { command, reward, files, model, each: _, content: __, ...options } = given
  const waiting = options.signal ? { signal: options.signal } : {}
  const program = {
    command: commandOf(command),
    ...rewardOf(reward),
    ...(model === undefined ? {} : { model }),
    ...(await broughtFiles(context, files, waiting)),
  }
  return await specificationOf(context, name, options, { kind: 'program', program })
}

/** Of a run whose worker is a function: bundled, and uploaded. */
export async function functionSpecification<Task>(
  context: ClientContext,
  name: string,
  run: RemoteFunction<never, unknown>,
  { each: _, grade, ...options }: FunctionRunOptions<Task>,
): Promise<RunCreateInput> {
  const inContainers = isContainerGrade(grade) ? grade : undefined
  const deployed = await run.asWorker(inContainers?.run)
  const graded = isContainerGrade(grade) ? {} : grade ? { grade } : {}
  const specification = await specificationOf(
    context,
    name,
    { ...options, ...graded },
    { kind: 'function', function: deployed },
  )
  if (!inContainers) return specification
  return { ...specification, grade: { kind: 'worker', in: inContainers.in ?? 'world' } }
}

/** Uploads the grader's files, and builds the image where it is only described: last, since it may take minutes. */
async function specificationOf<Task>(
  context: ClientContext,
  name: string,
  options: MapOptions<Task>,
  kind: Pick<RunCreateInput, 'kind' | 'program' | 'function'>,
): Promise<RunCreateInput> {
  const { from, concurrency = CONCURRENCY_DEFAULT, artifacts } = options
  const definition = await definitionOf(context, options)
  const specification = {
    ...{ ...definition, ...kind, name, concurrency },
    ...(artifacts ? { artifacts: [...artifacts] } : {}),
  }
  if (isDescribed(from)) {
    refuseEarly(runCreate, { ...specification, from: 'described' })
    refuseResources(options.resources)
  }
  return { ...specification, from: await startOf(context, from, options) }
}

/** What a process that attaches says that the run is. */
export async function namedOf<Task>(
  context: ClientContext,
  options: AttachOptions<Task>,
): Promise<RunAttachInput> {
  const { from } = options
  const definition = await definitionOf(context, options)
  if (from === undefined) return definition
  return { ...definition, from: await startOf(context, from, options) }
}

/** What of the options makes a run, but for what it starts from. */
async function definitionOf<Task>(context: ClientContext, options: AttachOptions<Task>) {
  const { signal, onLog, from, concurrency, key, expected, grade, group, setup, ...rest } = options
  const waiting = signal ? { signal } : {}
  return {
    ...rest,
    ...(setup ? { setup: setup.map(commandOf) } : {}),
    ...(group ? { group: groupOf(group) } : {}),
    ...(grade ? { grade: await gradeOf(context, grade, waiting) } : {}),
  }
}

async function startOf<Task>(
  context: ClientContext,
  from: ImageLike,
  { signal, onLog }: AttachOptions<Task>,
): Promise<string> {
  return await resolveImage(context, from, {
    ...(signal ? { signal } : {}),
    ...(onLog ? { onLog } : {}),
  })
}

function groupOf<Task>({ by, ...rest }: GroupOptions<Task>) {
  return { ...rest, by: by ? ('name' as const) : ('prompt' as const) }
}

async function gradeOf<Task>(
  context: ClientContext,
  grade: CommandGrade | FunctionGrade<Task>,
  waiting: Waiting,
): Promise<GradeSpec> {
  if (grade.run instanceof RemoteFunction) {
    const message = 'the grader is a function of containers, and the episode is none'
    throw new SandlotError('invalid_request', message, {
      hint: 'Make the episode one too, by client.fn; or pass the grader as it is: `grade: { run: grade }`.',
    })
  }
  if (isFunctionGrade(grade)) return { kind: 'worker', in: grade.in ?? 'world' }
  return await commandGrade(context, grade, waiting)
}

/** From the options of `map` to the run's specification on the wire. */
import {
  type GradeSpec,
  type RunAttachInput,
  type RunCreateInput,
  runCreate,
} from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { refuseEarly, refuseResources } from '../connection/refuse-early.ts'
import { putBytes, putFile } from '../image/blob.ts'
import { type ImageLike, isDescribed, resolveImage } from '../image/resolve.ts'
import {
  type AttachOptions,
  type BroughtContent,
  CONCURRENCY_DEFAULT,
  type CommandGrade,
  type FunctionGrade,
  type GroupOptions,
  isFunctionGrade,
  type MapOptions,
} from './options.ts'

const FILE_MODE = 0o644

/** Uploads the grader's files, and builds the image where it is only described: last, since it may take minutes. */
export async function specificationOf<Task>(
  context: ClientContext,
  name: string,
  options: MapOptions<Task>,
): Promise<RunCreateInput> {
  const { from, concurrency = CONCURRENCY_DEFAULT, artifacts } = options
  const definition = await definitionOf(context, options)
  const specification = {
    ...{ ...definition, name, kind: 'worker' as const, concurrency },
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
    ...(setup
      ? { setup: setup.map((command) => (typeof command === 'string' ? command : [...command])) }
      : {}),
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
  if (isFunctionGrade(grade)) return { kind: 'worker', in: grade.in ?? 'world' }
  const { run, files, in: where, ...rest } = grade
  const brought = await Promise.all(
    Object.entries(files ?? {}).map(async ([path, content]) => ({
      path,
      mode: FILE_MODE,
      blob: await contentBlob(context, content, waiting),
    })),
  )
  return {
    ...rest,
    kind: 'command',
    command: typeof run === 'string' ? run : [...run],
    in: where ?? 'world',
    ...(brought.length > 0 ? { files: brought } : {}),
  }
}

async function contentBlob(
  context: ClientContext,
  content: BroughtContent,
  waiting: Waiting,
): Promise<string> {
  if (typeof content === 'string')
    return await putBytes(context, new TextEncoder().encode(content), waiting)
  if (content instanceof Uint8Array) return await putBytes(context, content, waiting)
  return await putFile(context, content.path, waiting)
}

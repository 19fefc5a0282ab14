/** Tasks of a run of programs: one JSON object a line. */
import { hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { stdin } from 'node:process'
import { createInterface } from 'node:readline'
import { command, invalidRequest, LIMITS, taskPut } from '@sandlot/protocol'
import { type ImageLike, SandlotError, type TaskOptions } from 'sandlot'
import { Mistake } from '../failure.ts'
import { parseFrom } from './from.ts'

/** The member of a line that is not the program's to see: what the task has of its own. */
const OWN = 'sandlot'

export interface ProgramTask {
  readonly key: string
  /** What the program gets: the line, without what is not its. */
  readonly content: Readonly<Record<string, unknown>>
  readonly own: TaskOptions
  /** Who solves it, and who does nothing: for `sandlot doctor tasks` alone. */
  readonly trials: { readonly [Role in 'gold' | 'null']?: string | readonly string[] | undefined }
  /** Of all that it is made of. */
  digest(): Promise<string>
}

/**
 * Reads all of them before anything begins, from a file or (`-`) standard input. A line that is none is refused with its number.
 * @throws Mistake
 */
export async function readProgramTasks(file: string): Promise<ProgramTask[]> {
  const folder = file === '-' ? '.' : dirname(file)
  const starts = new Map<string, ImageLike>()
  const lines = new Map<string, number>()
  const tasks: ProgramTask[] = []
  let number = 0
  for await (const line of linesOf(file)) {
    number++
    // Editors put a byte order mark before the first line.
    const text = line.trim()
    if (text === '') continue
    const where = `${file === '-' ? 'standard input' : file}, line ${number}`
    const task = taskOf(text, tasks.length, { where, folder, starts })
    const before = lines.get(task.key)
    if (before !== undefined) {
      throw new Mistake(
        `${where}: the key ${JSON.stringify(task.key)} is that of line ${before}`,
        'give each task an `id` of its own; to run one several times, say --group N',
      )
    }
    lines.set(task.key, number)
    tasks.push(task)
  }
  if (tasks.length > 0) return tasks
  throw new Mistake(`${file} has no tasks`, 'write one JSON object a line')
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const input = file === '-' ? stdin : createReadStream(file)
  const failed = new Promise<never>((_, reject) => input.once('error', reject))
  failed.catch(() => undefined)
  try {
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
    if (input.errored) await failed
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    throw new Mistake(
      `cannot read ${file}: ${message}`,
      code === 'EISDIR'
        ? 'a folder of tasks in Harbor’s format is named by --harbor'
        : 'name a file with one JSON object a line, or - for standard input',
      { cause },
    )
  }
}

interface Reading {
  readonly where: string
  /** Where files of this machine are looked for. */
  readonly folder: string
  /** By what is said: of equal descriptions there is one. */
  readonly starts: Map<string, ImageLike>
}

function taskOf(line: string, position: number, reading: Reading): ProgramTask {
  const { where } = reading
  const parsed = parseJson(line, where)
  if (!isObject(parsed)) {
    throw new Mistake(`${where} is not a JSON object`, 'write one JSON object a line')
  }
  const { [OWN]: given = {}, ...content } = parsed
  const wrong = (why: string) =>
    new Mistake(`${where}: ${OWN}${why}`, `correct what \`${OWN}\` of that line says`)
  if (!isObject(given)) throw wrong(' is not an object')
  const { gold, null: none, ...own } = given
  return {
    key: keyOf(content, position, where),
    content,
    own: ownTerms(own, { ...reading, wrong }),
    trials: { gold: trialOf(gold, 'gold', wrong), null: trialOf(none, 'null', wrong) },
    digest: async () => `sha256:${hash('sha256', JSON.stringify(parsed))}`,
  }
}

function parseJson(line: string, where: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    const why = (cause as Error).message
    throw new Mistake(`${where} is not JSON: ${why}`, 'write one JSON object a line', { cause })
  }
}

function keyOf({ id }: Record<string, unknown>, position: number, where: string): string {
  if (id === undefined) return String(position)
  const key = typeof id === 'number' ? String(id) : id
  if (typeof key === 'string' && key !== '' && key.length <= LIMITS.keyLength) return key
  throw new Mistake(
    `${where}: its \`id\` is no key`,
    `an id is a number, or text of 1 to ${LIMITS.keyLength} characters`,
  )
}

type Wrong = (why: string) => Mistake

function trialOf(given: unknown, name: string, wrong: Wrong): string | string[] | undefined {
  if (given === undefined) return undefined
  const { error, data } = command.safeParse(given)
  if (error) throw wrong(`.${name} is no command: text for a shell, or a list of arguments`)
  return data
}

function ownTerms(
  given: Record<string, unknown>,
  { where, folder, starts, wrong }: Reading & { readonly wrong: Wrong },
): TaskOptions {
  const {
    from,
    files,
    grade = {},
    steps,
    timeout,
    resources,
    network,
    quarantine,
    ...program
  } = given
  if (!isObject(grade)) throw wrong('.grade is not an object')
  if (from !== undefined && typeof from !== 'string') throw wrong('.from is not text')
  const many = { steps: steps === undefined ? undefined : travelling(steps) }
  const terms = {
    ...{ timeout, resources, network, quarantine, program: { ...program, ...many } },
    grade: travelling(grade),
  }
  const { error } = taskPut.safeParse({ key: 'k', json: '{}', ...terms })
  if (error) {
    const { message } = invalidRequest(OWN, error)
    const at = message.replace(/^sandlot/, '').replace(/^\.program(?=[.:])/, '')
    throw wrong(at.replace(/(grade|steps\.\d+)\.command(?=:)/, '$1.run'))
  }
  const named = (each: Record<string, unknown>, at: string): Record<string, unknown> =>
    defined({
      ...each,
      from:
        each.from === undefined ? undefined : startOf(String(each.from), { where, folder, starts }),
      files: brought(each.files, folder, () => wrong(`${at}.files`)),
      grade: isObject(each.grade) ? named(each.grade, `${at}.grade`) : undefined,
    })
  return defined({
    ...(program as TaskOptions),
    ...defined({ timeout, resources, network, quarantine }),
    ...named({ from, files, grade: given.grade }, ''),
    steps: (steps as Record<string, unknown>[] | undefined)?.map((step, index) =>
      named(step, `.steps[${index}]`),
    ),
  }) as unknown as TaskOptions
}

/** As it will travel, but for its files: what is `run` here is a command there. */
function travelling(given: unknown): unknown {
  if (Array.isArray(given)) return given.map(travelling)
  if (!isObject(given)) return given
  const { run, files: _, grade, ...rest } = given
  return defined({ ...rest, command: run, grade: travelling(grade) })
}

/** Path in the sandbox → text, or a file of this machine. */
function brought(given: unknown, folder: string, wrong: () => Mistake): TaskOptions['files'] {
  if (given === undefined) return undefined
  if (!isObject(given)) throw wrong()
  return Object.fromEntries(
    Object.entries(given).map(([to, content]) => {
      if (typeof content === 'string') return [to, content]
      if (!isObject(content) || typeof content.path !== 'string') throw wrong()
      return [to, { ...content, path: resolve(folder, content.path) }]
    }),
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function startOf(from: string, { where, folder, starts }: Reading): ImageLike {
  try {
    const start = starts.get(from) ?? parseFrom(from, folder)
    starts.set(from, start)
    return start
  } catch (error) {
    if (!(error instanceof SandlotError)) throw error
    throw new Mistake(`${where}: ${error.message}`, error.hint, { cause: error })
  }
}

function defined<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(value).filter(([, field]) => field !== undefined),
  ) as Partial<T>
}

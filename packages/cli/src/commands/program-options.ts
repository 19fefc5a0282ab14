/** From the options of a verb to those of a run of programs. */
import { statSync } from 'node:fs'
import { basename } from 'node:path'
import type { ImageLike, ProgramOptions, RewardOption } from 'sandlot'
import { Mistake } from '../failure.ts'
import type { FolderOptions } from '../tasks/harbor-folders.ts'
import { parseFrom } from './from.ts'
import { networkChoiceOf } from './machine-options.ts'
import { given, pairs } from './options.ts'
import type { ProgramTask } from './program-tasks.ts'
import { type ResourceOptions, resourcesOf } from './resource-options.ts'
import { secretsOf } from './secrets.ts'

export interface StartRunOptions extends FolderOptions, ResourceOptions {
  /** Folders of tasks in Harbor's format, in place of a file. */
  readonly harbor?: readonly string[]
  readonly agent?: string
  readonly quarantine?: string
  /** The runs whose valid results are not made again. */
  readonly missingFrom?: readonly string[]
  readonly from?: string
  readonly command?: string
  /** `FILE#EXPORT`: the episode, in place of a command. */
  readonly function?: string
  readonly functionAllow?: readonly string[]
  readonly functionSecret?: readonly string[]
  readonly gradeFunction?: string
  readonly reward?: string
  readonly grade?: string
  readonly name?: string
  readonly ifExists?: 'attach' | 'replace'
  readonly concurrency?: number
  readonly timeout?: readonly string[]
  readonly setup?: readonly string[]
  readonly model?: string
  readonly env?: readonly string[]
  readonly file?: readonly string[]
  readonly gradeFile?: readonly string[]
  readonly group?: number
  readonly seed?: number
  readonly allow?: readonly string[]
  readonly packages?: boolean
  readonly openNetwork?: boolean
  readonly secret?: readonly string[]
  readonly artifact?: readonly string[]
  readonly keep?: 'on-failure' | 'always' | number
  readonly retain?: string
  readonly tag?: readonly string[]
  readonly watch?: boolean
  readonly detach?: boolean
}

/** @throws Mistake */
export function programOptions(
  tasks: readonly ProgramTask[],
  options: StartRunOptions,
): ProgramOptions<ProgramTask> {
  const alone = (['functionAllow', 'gradeFunction'] as const).find((name) => options[name])
  if (alone !== undefined) {
    throw new Mistake(
      `--${dashed(alone)} has no place without --function`,
      'a run of commands is graded by a command: --grade',
    )
  }
  return {
    ...sharedOptions(options),
    from: fromOf(tasks, options),
    command: commandOf(tasks, options),
    ...verdictOf(options),
  }
}

/** What a task folder says itself. */
const OF_FOLDERS = [
  ...(['from', 'command', 'grade', 'gradeFile', 'reward'] as const),
  ...(['function', 'functionAllow', 'gradeFunction'] as const),
]

/**
 * What a run of task folders has beside what they say; what they may reach is said where they are read.
 * @throws Mistake
 */
export function folderOptions(options: StartRunOptions): SharedOptions {
  const wrong = OF_FOLDERS.find((name) => options[name] !== undefined)
  if (wrong !== undefined) {
    throw new Mistake(
      `--${dashed(wrong)} has no place beside task folders`,
      'they say themselves what they start from, and how they are graded',
    )
  }
  const { allow: _, packages: __, openNetwork: ____, gradeIn: ___, ...rest } = options
  return sharedOptions(rest)
}

function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

type SharedOptions = Omit<ProgramOptions<ProgramTask>, 'from' | 'command'>

/** What a run has wherever its tasks come from. */
export function sharedOptions(options: StartRunOptions): SharedOptions {
  const { name, ifExists, concurrency, seed, setup, keep, retain } = options
  const resources = resourcesOf(options)
  const env = pairs(options.env ?? [], '--env')
  return {
    ...given({
      name,
      ifExists,
      concurrency,
      seed,
      setup,
      keep,
      retain,
      artifacts: options.artifact,
    }),
    files: filesOf(options.file, '--file'),
    ...(options.timeout ? { timeout: timeoutsOf(options.timeout) } : {}),
    ...(Object.keys(resources).length > 0 ? { resources } : {}),
    ...(Object.keys(env).length > 0 ? { env } : {}),
    ...(options.model === undefined ? {} : { model: { url: options.model } }),
    ...networkOf(options),
    ...secretsOf(options.secret),
    ...(options.group === undefined ? {} : { group: { size: options.group } }),
    ...(options.tag ? { tags: pairs(options.tag, '--tag') } : {}),
    key: ({ key }) => key,
    content: ({ content }) => content,
    each: ({ own }) => own,
  }
}

/** Where each task says for itself what it starts from, the run needs nothing else. */
export function fromOf(tasks: readonly ProgramTask[], { from }: StartRunOptions): ImageLike {
  if (from !== undefined) return parseFrom(from)
  const first = tasks[0]?.own.from
  if (first !== undefined && tasks.every(({ own }) => own.from !== undefined)) return first
  throw new Mistake(
    'not every task says what its sandboxes start from',
    'say it for all with --from, such as --from debian:bookworm,python3',
  )
}

function commandOf(
  tasks: readonly ProgramTask[],
  { command }: StartRunOptions,
): ProgramOptions<ProgramTask>['command'] {
  if (command !== undefined) return command
  const first = tasks[0]?.own.command
  if (first !== undefined && tasks.every(({ own }) => own.command !== undefined)) return first
  throw new Mistake(
    'not every task says what is run',
    "say it for all with --command, such as --command 'python3 /agent.py'",
  )
}

function rewardOf(text: string): RewardOption {
  if (text === 'exit' || text === 'stdout') return text
  const path = /^file:(\/.+)$/.exec(text)?.[1]
  if (path !== undefined) return { file: path }
  throw new Mistake(
    `--reward ${text} says no place`,
    'write exit, stdout, or file:PATH with an absolute path',
  )
}

/** Of the grader where there is one, else of the command itself. */
export function verdictOf({
  grade,
  gradeIn,
  gradeFile,
  reward: place,
}: StartRunOptions): Pick<ProgramOptions<unknown>, 'reward' | 'grade'> {
  const reward = place === undefined ? {} : { reward: rewardOf(place) }
  if (grade === undefined) {
    if (gradeIn === undefined && gradeFile === undefined) return reward
    throw new Mistake(
      `there is no grader for ${gradeIn === undefined ? '--grade-file' : '--grade-in'}`,
      "say what grades with --grade, such as --grade 'python3 /tests/check.py'",
    )
  }
  return {
    grade: {
      run: grade,
      ...reward,
      ...(gradeIn === undefined ? {} : { in: gradeIn }),
      files: filesOf(gradeFile, '--grade-file'),
    },
  }
}

/** `PATH=FILE` each: path in the sandbox, file of this machine. */
function filesOf(texts: readonly string[] | undefined, option: string) {
  return Object.fromEntries(
    Object.entries(pairs(texts ?? [], option, 'PATH=FILE')).map(([path, file]) => {
      if (!path.startsWith('/')) {
        throw new Mistake(
          `${option} ${path}=${file}: ${path} is no absolute path in the sandbox`,
          `the path in the sandbox comes first: write it as ${option} /${basename(path)}=${file}`,
        )
      }
      return [path, { path: file, mode: isExecutable(file) ? 0o755 : 0o644 }]
    }),
  )
}

function isExecutable(file: string): boolean {
  return ((statSync(file, { throwIfNoEntry: false })?.mode ?? 0) & 0o111) !== 0
}

/** `PHASE=DURATION` each, or a duration alone for the agent. */
function timeoutsOf(texts: readonly string[]): NonNullable<ProgramOptions<unknown>['timeout']> {
  return pairs(
    texts.map((text) => (text.includes('=') ? text : `agent=${text}`)),
    '--timeout',
    'PHASE=DURATION',
  )
}

/** For its set-up and its agent; a grader reaches nothing, except where the interface is the sandbox's own from start to end. */
function networkOf(options: StartRunOptions): Pick<ProgramOptions<unknown>, 'network'> {
  const choice = networkChoiceOf(options)
  if (choice === undefined) return {}
  const network = { setup: choice, agent: choice }
  return { network: choice === 'open' ? { ...network, grade: choice } : network }
}

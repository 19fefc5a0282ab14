/** From the options of `runs start` to those of a run whose episodes are calls of a function. */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type {
  EpisodeContext,
  EpisodeInContainers,
  EpisodeResult,
  FunctionRunOptions,
  GradeContext,
  RemoteFunction,
  Sandlot,
  Verdict,
} from 'sandlot'
import { Mistake } from '../failure.ts'
import { fromOf, type StartRunOptions, sharedOptions, verdictOf } from './program-options.ts'
import type { ProgramTask } from './program-tasks.ts'
import { secretsOf } from './secrets.ts'

type Options = Omit<FunctionRunOptions<unknown>, 'key' | 'each'>

/** What only a program has. */
const OF_PROGRAMS = ['command', 'file', 'model', 'reward'] as const

/** `client`: of which the functions are. @throws Mistake for what has no place beside a function */
export function functionOptions(
  client: Pick<Sandlot, 'fn'>,
  tasks: readonly ProgramTask[],
  options: StartRunOptions,
): { readonly episode: EpisodeInContainers<unknown>; readonly run: Options } {
  const {
    function: named = '',
    gradeFunction,
    gradeIn,
    grade,
    functionAllow,
    functionSecret,
  } = options
  const wrong = OF_PROGRAMS.find((name) => options[name] !== undefined)
  if (wrong !== undefined && !(wrong === 'reward' && grade !== undefined)) {
    throw new Mistake(
      `--${wrong} has no place beside --function`,
      'a function writes its files itself, and reaches its model by --function-allow HOST',
    )
  }
  if (gradeFunction !== undefined && grade !== undefined) {
    throw new Mistake('both --grade and --grade-function', 'name one of them')
  }
  const shared = sharedOptions(options)
  const reaching = {
    ...(functionAllow ? { network: { allow: [...functionAllow] } } : {}),
    ...secretsOf(functionSecret, '--function-secret'),
  }
  const place = gradeIn === undefined ? {} : { in: gradeIn }
  const graded =
    gradeFunction === undefined
      ? gradeOf(options)
      : { grade: { run: grader(client, gradeFunction, '--grade-function'), ...place } }
  return {
    episode: client.fn<(context: EpisodeContext<unknown>) => EpisodeResult, string>(
      ...moduleOf(named, '--function', reaching),
    ),
    run: { ...withoutTasks(shared), from: fromOf(tasks, options), ...graded },
  }
}

/** What is said of each task is said where they are submitted. */
function withoutTasks(shared: ReturnType<typeof sharedOptions>) {
  const { key: _, content: __, each: ___, expected: ____, ...rest } = shared
  const { files: _____, model: ______, reward: _______, group, grade: ________, ...run } = rest
  return { ...run, ...(group ? { group: { size: group.size } } : {}) }
}

function gradeOf(options: StartRunOptions): Pick<Options, 'grade'> {
  const { grade } = verdictOf(options)
  return grade === undefined ? {} : { grade }
}

function grader(
  client: Pick<Sandlot, 'fn'>,
  text: string,
  option: string,
): RemoteFunction<GradeContext<unknown>, Verdict> {
  return client.fn<(context: GradeContext<unknown>) => Verdict, string>(
    ...moduleOf(text, option, {}),
  )
}

/** `FILE#EXPORT`, or a file whose default export is meant. */
function moduleOf<T extends object>(text: string, option: string, more: T) {
  const [, file = '', name] = /^(.*?)(?:#([^#]+))?$/s.exec(text) ?? []
  const path = resolve(file)
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) {
    throw new Mistake(
      `${option} ${text} names no file`,
      `write the module and its export: ${option} ./reward.ts#score`,
    )
  }
  const options = { ...more, ...(name === undefined ? {} : { export: name }) }
  return [pathToFileURL(path), options] as const
}

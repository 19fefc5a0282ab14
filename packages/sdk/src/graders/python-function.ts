/** A grader for one Python function, in which the candidate's code never shares a process with the tests or the verdict. */
import { readFile } from 'node:fs/promises'
import { SandlotError } from '@sandlot/protocol'
import type { GradeContext } from '../rollout/episode.ts'
import type { FunctionGrade } from '../rollout/options.ts'

export interface PythonFunctionTest {
  /** Trusted code that the tests build on. */
  readonly prelude?: string
  /** Python source that defines `check(candidate)`, which raises when the candidate is wrong. */
  readonly test: string
  /** Name of the function in the candidate's file. */
  readonly entryPoint: string
}

export interface PythonFunctionOptions<Task> {
  /** The candidate's file in the episode's world. One that is missing, or no regular file, scores 0. */
  readonly candidate: string
  readonly test: (task: Task) => PythonFunctionTest
  /** Time for all calls of the candidate together. Whole seconds, default 10. */
  readonly timeoutSeconds?: number
  /** Address space of the candidate's one process, at most half of the sandbox's memory. Bytes, default 512 MiB. */
  readonly memoryBytes?: number
}

const CANDIDATE_BYTES_MAX = 1024 * 1024
const TIMEOUT_DEFAULT_S = 10
const MEMORY_DEFAULT_BYTES = 512 * 1024 * 1024
/** For the interpreters' own start, on a machine that is busy. */
const GRADER_SLACK_S = 60

/**
 * Grades in a clean world: the image as it was, with nothing of the episode but the candidate's file. The tests run in a process
 * that the candidate can neither see nor signal; the candidate runs in a child of another user and only its values count.
 * The image needs `python3`.
 */
export function pythonFunction<Task>(options: PythonFunctionOptions<Task>): FunctionGrade<Task> {
  for (const name of ['timeoutSeconds', 'memoryBytes'] as const) {
    const given = options[name]
    if (given === undefined || (Number.isSafeInteger(given) && given > 0)) continue
    throw new SandlotError('invalid_request', `${name} is ${given}, not a positive whole number`)
  }
  return { in: 'clean', run: async (context) => await grade(context, options) }
}

async function grade<Task>(
  context: GradeContext<Task>,
  options: PythonFunctionOptions<Task>,
): Promise<number> {
  const { sandbox, task, signal } = context
  const candidate = await readCandidate(context, options.candidate)
  if (candidate === undefined) return 0
  const timeoutS = options.timeoutSeconds ?? TIMEOUT_DEFAULT_S
  const specification = {
    prelude: '',
    ...options.test(task),
    candidate: '/grader/candidate.py',
    child: '/grader/child.py',
    timeoutS,
    memoryBytes: options.memoryBytes ?? MEMORY_DEFAULT_BYTES,
  }
  const files = {
    'parent.py': await source('parent'),
    'child.py': await source('child'),
    'candidate.py': candidate,
  }
  for (const [name, content] of Object.entries(files)) {
    await sandbox.files.write(`/grader/${name}`, content, { mode: 0o644, signal })
  }
  await sandbox.files.write('/grader/spec.json', JSON.stringify(specification), {
    mode: 0o600,
    signal,
  })
  const command = ['python3', '-I', '-S', '/grader/parent.py', '/grader/spec.json']
  const end = await sandbox.exec(command, {
    user: '0:0',
    cwd: '/',
    timeout: (timeoutS + GRADER_SLACK_S) * 1000,
    signal,
  })
  return verdictOf(end.exitCode, end.stdout, end.stderr)
}

/** Bytes of the candidate's file; undefined where the episode left nothing that could be one. */
async function readCandidate<Task>(
  context: GradeContext<Task>,
  path: string,
): Promise<Uint8Array | undefined> {
  try {
    const bytes = await context.episode.files.read(path, {
      length: CANDIDATE_BYTES_MAX + 1,
      signal: context.signal,
    })
    return bytes.length > CANDIDATE_BYTES_MAX ? undefined : bytes
  } catch (error) {
    if (error instanceof SandlotError && error.code.startsWith('file_')) return undefined
    throw error
  }
}

function verdictOf(exitCode: number | null, stdout: string, stderr: string): number {
  const lines = stdout.trim().split('\n')
  const parsed =
    lines.length === 1 && exitCode === 0 ? (JSON.parse(lines[0] ?? '') as { reward?: unknown }) : {}
  if (parsed.reward === 0 || parsed.reward === 1) return parsed.reward
  throw new Error(
    `the grader gave no verdict (exit code ${exitCode}): ${stderr.trim().slice(-500)}`,
  )
}

const sources = new Map<string, Promise<string>>()

function source(name: 'parent' | 'child'): Promise<string> {
  let text = sources.get(name)
  if (!text) {
    text = readFile(new URL(`./python-${name}.py`, import.meta.url), 'utf8')
    sources.set(name, text)
  }
  return text
}

/** The grade of a step that others follow: its sandbox's processes live on meanwhile. */
import { type Artifact, argvOf, formatDuration, type StepGrade } from '@sandlot/protocol'
import type { StepWorld } from '../../node/port.ts'
import { gone, isByFiles, pathsOf } from '../grade-command.ts'
import { COORDINATOR_LIMITS } from '../limits.ts'
import { hasPolicies, type SandboxWork } from '../sandboxes.ts'
import { BY_EXIT, readVerdict, type Verdict } from '../verdict.ts'
import { keepOutput } from './output.ts'
import { artifactsOf, type StepWork, stepExec } from './run-steps.ts'
import { stepTimes } from './step-times.ts'
import { taskFile } from './told.ts'

interface Graded {
  readonly verdict: Verdict
  readonly artifacts: readonly Artifact[]
}

/** Beside what the step's agent left running, or in a world that shows an image of its own. */
export async function gradeStep(
  work: SandboxWork,
  at: StepWork,
  grade: StepGrade,
): Promise<Graded> {
  const { node, signal, record } = work
  const { sandbox, network, program, step } = at
  const world = grade.from === undefined ? 'main' : worldOf(at.index)
  const exec = stepExec(work, at, 'grade')
  const { gradeMs } = stepTimes(step, program.times ?? record.specification.timeoutMs)
  const phased = hasPolicies(network)
  try {
    if (world !== 'main') await openWorld(work, at, { world, image: grade.from as string })
    if (!(await node.hasExec({ sandbox, exec }, { signal }))) await bring(work, at, grade, world)
    if (phased) await node.enterPhase({ sandbox, phase: 'grade', world }, { signal })
    const { cwd, user } = grade
    const end = await node.exec(
      {
        ...{ sandbox, world, exec, argv: argvOf(grade.command), timeoutMs: gradeMs },
        env: { ...grade.env, ...at.told },
        ...(grade.from === undefined ? {} : { image: grade.from }),
        ...(cwd === undefined ? {} : { cwd }),
        ...(user === undefined ? {} : { user }),
        headBytes: COORDINATOR_LIMITS.outputHeadBytes,
        tailBytes: COORDINATOR_LIMITS.outputTailBytes,
      },
      { signal },
    )
    const { verdictBytes: bytesMax } = COORDINATOR_LIMITS
    const verdict = end.timedOut
      ? none(`its grader did not end within ${formatDuration(gradeMs)}`)
      : await readVerdict(grade.reward ?? BY_EXIT, end, {
          who: 'its grader',
          read: (path) => node.readFile({ sandbox, world, path, bytesMax }, { signal }),
        })
    const artifacts = await keepOutput(work, end, artifactsOf(at, 'grade'))
    if (phased) await node.enterPhase({ sandbox, phase: 'agent' }, { signal })
    if (world !== 'main') await node.endWorld({ sandbox, world }, { signal })
    return { verdict, artifacts }
  } catch (error) {
    if (!isByFiles(error)) throw error
    return { verdict: none(`its grader could not be run: ${error.message}`), artifacts: [] }
  }
}

/** Letters alone, as names of worlds are. */
function worldOf(index: number): StepWorld {
  const letters = [...index.toString(26)].map((digit) =>
    String.fromCharCode('a'.charCodeAt(0) + Number.parseInt(digit, 26)),
  )
  return `step${letters.join('')}`
}

async function openWorld(
  { node, signal }: SandboxWork,
  { sandbox }: StepWork,
  { world, image }: { readonly world: StepWorld; readonly image: string },
): Promise<void> {
  const wait = { signal, timeoutMs: COORDINATOR_LIMITS.gradeOpenMs }
  await node.openGradeWorld({ sandbox, world, shows: { image }, beside: true }, wait)
}

/** What it needs, and nothing where its verdict will be. */
async function bring(
  { node, tasks, signal }: SandboxWork,
  { sandbox, episode }: StepWork,
  { files = [], clear, reward, pass = [] }: StepGrade,
  world: 'main' | StepWorld,
): Promise<void> {
  const wait = { signal, timeoutMs: COORDINATOR_LIMITS.gradeOpenMs }
  if (world !== 'main' && pass.length > 0) {
    await node.passFiles({ sandbox, world, paths: pass }, wait)
  }
  const task = await taskFile(tasks, episode)
  const all = { files: [task, ...files], ...gone(pathsOf(reward), clear) }
  await node.putFiles({ sandbox, world, ...all }, wait)
}

function none(cause: string): Verdict {
  return { kind: 'none', cause }
}

/** A verifier → how a task, or its last step, is graded. */
import type { TaskGrade } from '../rollout/program-options.ts'
import { filesOf, GRADE_COMMAND, GRADE_ELSEWHERE, placeOf, TESTS, VERDICTS } from './places.ts'
import type { HarborTask, HarborVerifier } from './task.ts'

export type HarborGrader = TaskGrade & Required<Pick<TaskGrade, 'run' | 'clear'>>

/** Over what the agent left, or in a world that shows the image of its own environment. */
export function graderOf(
  { environment }: Pick<HarborTask, 'environment'>,
  verifier: HarborVerifier,
): HarborGrader {
  const { separate } = verifier
  if (separate === undefined) {
    return {
      ...placeOf({ environment }, verifier),
      run: GRADE_COMMAND,
      clear: [TESTS, VERDICTS],
      env: { ...environment.env, ...verifier.env },
      files: filesOf(verifier.files, TESTS),
    }
  }
  return {
    ...placeOf(separate, verifier),
    from: separate.environment.image,
    pass: separate.artifacts.map(({ path }) => path),
    run: GRADE_ELSEWHERE,
    // A verdict that was passed on is none; its tests are in its image.
    clear: [VERDICTS],
    env: { ...separate.environment.env, ...verifier.env },
  }
}

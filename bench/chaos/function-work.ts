/** The episodes of the chaos bench, as containers of the daemon run them. */
import type { EpisodeContext, EpisodeResult, GradeContext } from 'sandlot'
import type { ChaosDriver, ChaosTask } from './behaviours.ts'
import { chaosEpisode, chaosGrade } from './work.ts'

export interface FunctionTask extends ChaosTask {
  readonly driver: ChaosDriver
}

export async function episode(context: EpisodeContext<FunctionTask>): Promise<EpisodeResult> {
  return await chaosEpisode({ driver: context.task.driver })(context)
}

export async function grade(context: GradeContext<FunctionTask>): Promise<number> {
  return await chaosGrade(context)
}

/** Tasks with images that are there. */
import { type Sandlot, SandlotError } from 'sandlot'
import type { ProgramTask } from '../commands/program-tasks.ts'
import { buildImages } from './build-images.ts'
import { imagesOf, withBuilt } from './own-images.ts'

const NAMED_MAX = 20

/** @throws SandlotError that names each task whose image can't be built */
export async function withImages(
  client: Sandlot,
  tasks: readonly ProgramTask[],
  signal: AbortSignal,
): Promise<readonly ProgramTask[]> {
  const wanted = tasks.flatMap(({ own }) => imagesOf(own))
  const images = await buildImages(client, wanted, signal)
  const failed: string[] = []
  const ready: ProgramTask[] = []
  for (const task of tasks) {
    const built = withBuilt(task.own, images)
    if ('error' in built) failed.push(`${task.key}: ${built.error.message}`)
    else ready.push({ ...task, ...built })
  }
  if (failed.length === 0) return ready
  const more = failed.length > NAMED_MAX ? [`and ${failed.length - NAMED_MAX} more`] : []
  const lines = [...failed.slice(0, NAMED_MAX), ...more]
  throw new SandlotError(
    'image_build_failed',
    ['images can not be built:', ...lines].join('\n  '),
    {
      hint: 'Mend what the lines name, or leave those tasks out: `sandlot doctor tasks --write` lists them. Nothing was started.',
    },
  )
}

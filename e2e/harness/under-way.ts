/** Work that passes, and is to be met in its midst by whoever may stand still for longer than it takes. */
import { OFTEN_MS, until } from './until.ts'

/** Says of work whether it is over, however it ended. Its failure is whose who awaits it. */
export function watched(work: Promise<unknown>): () => boolean {
  let isOver = false
  const over = () => {
    isOver = true
  }
  work.then(over, over)
  return () => isOver
}

/** Begins work, and resolves when it is seen under way. It is undone and begun anew where it was over before. */
export async function seenUnderWay<T>(
  begin: () => Promise<T>,
  look: () => boolean | Promise<boolean>,
  undo: (done: T) => Promise<unknown> = async () => {},
): Promise<{ readonly work: Promise<T> }> {
  for (;;) {
    const work = begin()
    const isOver = watched(work)
    const isSeen = await until(
      'it is under way',
      async () => ((await look()) ? 'seen' : isOver() && 'missed'),
      { everyMs: OFTEN_MS },
    )
    if (isSeen === 'seen') return { work }
    await undo(await work)
  }
}

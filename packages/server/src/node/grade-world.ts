import { deadline } from '@sandlot/engine'
import { GuestError, type ImageStore, type RuntimeDriver } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import type { Entry } from './entry.ts'
import type { GraderWorld, OpenGradeWorldRequest, WorldShows } from './port.ts'

interface Parts {
  readonly driver: RuntimeDriver
  readonly images: ImageStore
}

/** Opens a grader's world once, however often it is asked for. */
export function openGradeWorld(
  parts: Parts,
  entry: Entry,
  {
    world = 'grade',
    shows = 'main',
    beside = false,
  }: Pick<OpenGradeWorldRequest, 'world' | 'shows' | 'beside'>,
): Promise<void> {
  const opening =
    entry.graderWorlds.get(world) ??
    open(parts, entry, { world, shows, beside }).catch((error) => {
      entry.graderWorlds.delete(world)
      throw error
    })
  entry.graderWorlds.set(world, opening)
  return opening
}

async function open(
  { driver, images }: Parts,
  entry: Entry,
  {
    shows,
    ...grade
  }: { readonly world: GraderWorld; readonly shows: WorldShows; readonly beside: boolean },
): Promise<void> {
  const { sandbox } = entry
  if (!sandbox) return
  using late = deadline(SERVER_LIMITS.gradeWorldMs)
  try {
    // It is mounted before anybody can remove it.
    using pinned = typeof shows === 'string' ? undefined : await images.pinForStart(shows.image)
    const below = typeof shows === 'string' ? shows : (pinned?.image.layers ?? [])
    await driver.openGradeWorld(sandbox, { ...grade, shows: below }, late)
  } catch (error) {
    // It was opened before, and the answer was lost.
    if (!(error instanceof GuestError && error.code === 'exists')) throw error
  }
  if (!grade.beside) entry.gradeOpened = true
}

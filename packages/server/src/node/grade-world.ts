import { deadline } from '@sandlot/engine'
import { GuestError, type RuntimeDriver } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import type { Entry } from './entry.ts'
import type { GraderWorld, OpenGradeWorldRequest } from './port.ts'

/** Opens a grader's world once, however often it is asked for. */
export function openGradeWorld(
  { driver }: { readonly driver: RuntimeDriver },
  entry: Entry,
  { world = 'grade', shows = 'main' }: Pick<OpenGradeWorldRequest, 'world' | 'shows'>,
): Promise<void> {
  const opening =
    entry.graderWorlds.get(world) ??
    open(driver, entry, { world, shows }).catch((error) => {
      entry.graderWorlds.delete(world)
      throw error
    })
  entry.graderWorlds.set(world, opening)
  return opening
}

async function open(
  driver: RuntimeDriver,
  entry: Entry,
  grade: { readonly world: GraderWorld; readonly shows: 'main' | 'image' },
): Promise<void> {
  const { sandbox } = entry
  if (!sandbox) return
  using late = deadline(SERVER_LIMITS.gradeWorldMs)
  try {
    await driver.openGradeWorld(sandbox, grade, late)
  } catch (error) {
    // It was opened before, and the answer was lost.
    if (!(error instanceof GuestError && error.code === 'exists')) throw error
  }
  entry.gradeOpened = true
}

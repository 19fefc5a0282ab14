import { RESULT_SCHEMA_VERSION } from '@sandlot/protocol'
import { episodeId } from '../episode/episode-id.ts'
import { isoTime } from '../episode/row.ts'
import type { UnrecordedGroup } from '../run/effect.ts'
import type { EventOf } from '../run/event.ts'
import type { Run } from '../run/run.ts'
import type { Group } from './group.ts'

/** The record of a group that has ended; the log of groups gives it its cursor, whoever reads it the rows. */
export function endedGroup(run: Run, group: Group, event: EventOf<'group_ended'>): UnrecordedGroup {
  const { state, reason, error, atMs } = event
  const counted = state === 'complete' ? group.counted : []
  return {
    schema: RESULT_SCHEMA_VERSION,
    run: run.policy.run,
    group: group.name,
    ...{ state, reason, error },
    members: group.members,
    outcomes: { ...group.outcomes },
    policyVersion: run.policyVersion,
    startedAt: isoTime(group.startedAtMs ?? atMs),
    endedAt: isoTime(atMs),
    episodes: counted.map(({ episode }) => episodeId(run.policy.run, episode)),
  }
}

import type { Engine } from '@sandlot/engine'
import { allRecords } from './run-record.ts'
import {
  ALL_STREAMS,
  DAMAGED_RECORDS,
  eventStream,
  groupStream,
  pinPrefix,
  type RunAddress,
  resultStream,
  runOfStream,
  startStream,
  taskStream,
} from './streams.ts'

export async function dropStreams(
  engine: Pick<Engine, 'log'>,
  streams: readonly string[],
): Promise<void> {
  for (const stream of streams) await engine.log.delete(stream)
}

/** What a run needs no more when it is over. */
export function workStreams(run: RunAddress): string[] {
  return [eventStream(run), taskStream(run), startStream(run)]
}

/** Removes all that a run left, but for its record. Idempotent. */
export async function dropRun(
  engine: Pick<Engine, 'log' | 'blobs'>,
  run: RunAddress,
): Promise<void> {
  const streams = [...workStreams(run), groupStream(run), resultStream(run)]
  await dropStreams(engine, streams)
  for (;;) {
    const { pins } = await engine.blobs.pins(pinPrefix(run))
    if (pins.length === 0) return
    for (const { name } of pins) await engine.blobs.unpin(name)
  }
}

/** Removes what a crash left: streams of runs of which no record knows, and those that a run which is over needs no more. */
export async function dropOrphans(engine: Engine): Promise<void> {
  // Whose logs those of a run are whose record can't be read, nobody can tell.
  const damaged = await engine.kv.list(DAMAGED_RECORDS, { limit: 1 })
  if (damaged.entries.length > 0) return
  const kept = new Set<string>()
  for await (const { record } of allRecords(engine.kv)) {
    kept.add(resultStream(record))
    kept.add(groupStream(record))
    if (record.finished) continue
    for (const stream of workStreams(record)) kept.add(stream)
  }
  for (let after: string | undefined; ; ) {
    const page = await engine.log.list(ALL_STREAMS, after === undefined ? {} : { after })
    for (const { name } of page.streams) {
      const run = runOfStream(name)
      if (run === undefined || kept.has(name)) continue
      // Its results were not dropped with its record: the run was deleted or replaced, and may have left blobs as well.
      if (!kept.has(resultStream(run))) await dropRun(engine, run)
      else await engine.log.delete(name)
    }
    after = page.next
    if (after === undefined) return
  }
}

import type { Engine } from '@sandlot/engine'
import { allRecords } from './run-record.ts'
import {
  ALL_STREAMS,
  eventStream,
  pinPrefix,
  type RunAddress,
  resultStream,
  runOfStream,
  taskStream,
} from './streams.ts'

export async function dropStreams(
  engine: Pick<Engine, 'log'>,
  streams: readonly string[],
): Promise<void> {
  for (const stream of streams) await engine.log.delete(stream)
}

/** Removes all that a run left, but for its record. Idempotent. */
export async function dropRun(
  engine: Pick<Engine, 'log' | 'blobs'>,
  run: RunAddress,
): Promise<void> {
  await dropStreams(engine, [eventStream(run), taskStream(run), resultStream(run)])
  for (;;) {
    const { pins } = await engine.blobs.pins(pinPrefix(run))
    if (pins.length === 0) return
    for (const { name } of pins) await engine.blobs.unpin(name)
  }
}

/** Removes what a crash left of runs that were replaced or deleted: streams of which no record knows. */
export async function dropOrphans(engine: Engine): Promise<void> {
  const orphans = new Map<string, RunAddress>()
  for (let after: string | undefined; ; ) {
    const page = await engine.log.list(ALL_STREAMS, after === undefined ? {} : { after })
    for (const { name } of page.streams) {
      const run = runOfStream(name)
      if (run) orphans.set(run.id, run)
    }
    after = page.next
    if (after === undefined) break
  }
  if (orphans.size === 0) return
  const finished: RunAddress[] = []
  for await (const { record } of allRecords(engine.kv)) {
    orphans.delete(record.id)
    if (record.finished) finished.push(record)
  }
  for (const run of orphans.values()) await dropRun(engine, run)
  for (const run of finished) await dropStreams(engine, [eventStream(run), taskStream(run)])
}

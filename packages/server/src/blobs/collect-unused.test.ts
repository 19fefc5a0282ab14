import { openSqliteEngine } from '@sandlot/engine'
import { temporaryDirectory } from '@sandlot/testkit'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createManualClock } from '../coordinator/simulated/clock.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { collectUnused } from './collect-unused.ts'

test('what nothing keeps is removed once nobody has put it for a day', async () => {
  await using place = await temporaryDirectory()
  const clock = createManualClock()
  await using engine = await openSqliteEngine({ directory: place.path, clock })
  const { blobs } = engine
  const loose = await blobs.put(Buffer.from('loose'))
  const kept = await blobs.put(Buffer.from('kept'), { pin: 'run/a' })
  await using _ = collectUnused(engine, { clock, log: pino({ level: 'silent' }) })
  clock.advance(SERVER_LIMITS.blobGraceMs - 1)
  await blobs.put(Buffer.from('later'))
  expect(await blobs.has(loose.digest)).toEqual(loose)
  clock.advance(SERVER_LIMITS.blobsEveryMs)
  while (await blobs.has(loose.digest)) clock.advance(SERVER_LIMITS.blobsEveryMs)
  expect(await blobs.has(kept.digest)).toEqual(kept)
})

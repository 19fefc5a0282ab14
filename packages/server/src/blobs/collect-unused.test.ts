import { openSqliteEngine } from '@sandlot/engine'
import type { ImageStore } from '@sandlot/runtime'
import { temporaryDirectory } from '@sandlot/testkit'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createManualClock } from '../coordinator/simulated/clock.ts'
import { Holdings } from '../holdings/holdings.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { collectUnused } from './collect-unused.ts'

test('what nothing keeps is removed once nobody has put it for a day', async () => {
  await using place = await temporaryDirectory()
  const clock = createManualClock()
  await using engine = await openSqliteEngine({ directory: place.path, clock })
  const { blobs } = engine
  const loose = await blobs.put(Buffer.from('loose'))
  const kept = await blobs.put(Buffer.from('kept'), { pin: 'run/a' })
  const images = { find: async () => undefined } as unknown as ImageStore
  const holdings = await Holdings.open({ kv: engine.kv, images: async () => [] })
  await holdings.share()
  for (const { digest } of [loose, kept]) await holdings.add('blob', 'other', digest)
  const holders = async () =>
    (await engine.kv.list('held/blob/')).entries.map(({ key }) => key.split('/')[2])
  await using _ = collectUnused(
    engine,
    { holdings, images },
    { clock, log: pino({ level: 'silent' }) },
  )
  clock.advance(SERVER_LIMITS.blobGraceMs - 1)
  await blobs.put(Buffer.from('later'))
  expect(await blobs.has(loose.digest)).toEqual(loose)
  clock.advance(SERVER_LIMITS.blobsEveryMs)
  while (await blobs.has(loose.digest)) clock.advance(SERVER_LIMITS.blobsEveryMs)
  expect(await blobs.has(kept.digest)).toEqual(kept)
  while ((await holders()).length > 1) clock.advance(SERVER_LIMITS.blobsEveryMs)
  expect(await holders()).toEqual([kept.digest])
})

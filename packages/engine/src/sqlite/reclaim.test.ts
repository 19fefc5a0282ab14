import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bytes, texts } from '../conformance/engine-under-test.ts'
import { openSqliteEngine } from './open.ts'
import { temporaryDirectory } from './under-test.ts'

const RECORDS = 200
const RECORD_BYTES = 250_000

test('the disk has back what a deleted stream took, and the rest is as it was', async () => {
  await using place = await temporaryDirectory()
  const { path: directory } = place
  const sizeBytes = async () => (await stat(join(directory, 'engine.db'))).size
  {
    await using engine = await openSqliteEngine({ directory })
    await engine.log.append('kept', [bytes('kept')])
    const record = new Uint8Array(RECORD_BYTES).fill(1)
    for (let count = 0; count < RECORDS; count++) await engine.log.append('large', [record])
    await engine.log.delete('large')
    await engine.kv.put('last', bytes('last'))
  }
  // Whatever of it was left to do goes on with the next start.
  await using engine = await openSqliteEngine({ directory })
  await expect
    .poll(
      async () => {
        await engine.kv.put('last', bytes('last'))
        await engine.log.delete('none')
        await engine.log.append('small', [new Uint8Array(200_000)])
        await engine.log.delete('small')
        return sizeBytes()
      },
      { timeout: 30_000, interval: 1 },
    )
    .toBeLessThan((RECORDS * RECORD_BYTES) / 2)
  expect(texts(await engine.log.read('kept'))).toEqual(['kept'])
})

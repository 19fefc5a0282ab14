import { describe, expect, test } from 'vitest'
import type { BackupFile } from '../backup.ts'
import type { Engine } from '../engine.ts'
import { bytes, expectCode, type MakeEngine, text, texts } from './engine-under-test.ts'

/** An engine over the files of a backup, in a place of its own. */
export type OpenBackup = (
  files: AsyncIterable<BackupFile>,
) => Promise<{ readonly engine: Engine } & AsyncDisposable>

/** What every engine must hold of its backups. */
export function describeBackup(makeEngine: MakeEngine, openBackup: OpenBackup): void {
  describe('a backup', () => {
    test('opens as an engine with everything durable, and without what nothing keeps', async () => {
      await using subject = await makeEngine()
      const { log, kv, queue, blobs } = subject.engine
      await log.append('s', [bytes('a'), bytes('b')], { dedup: ['1', '2'] })
      await kv.put('k', bytes('v'))
      await queue.put('q', bytes('task'))
      const kept = await blobs.put(bytes('kept'), { pin: 'p' })
      const loose = await blobs.put(bytes('loose'))
      await using backup = await openBackup(subject.engine.backup())
      const { engine } = backup
      expect(texts(await engine.log.read('s'))).toEqual(['a', 'b'])
      const again = await engine.log.append('s', [bytes('a')], { dedup: ['1'] })
      expect(again.duplicates).toHaveLength(1)
      expect(text((await engine.kv.get('k'))?.value ?? bytes(''))).toBe('v')
      expect(await engine.queue.depth('q')).toMatchObject({ ready: 1 })
      expect(await engine.blobs.has(kept.digest)).toEqual(kept)
      expect(await engine.blobs.has(loose.digest)).toBeUndefined()
    })

    test('is of one instant while others write and collect', async () => {
      await using subject = await makeEngine()
      const { log, blobs } = subject.engine
      const over = new AbortController()
      const written = (async () => {
        let count = 0
        for (; !over.signal.aborted; count++) {
          const { digest } = await blobs.put(bytes(`content ${count}`), { pin: `p/${count}` })
          await log.append('s', [bytes(digest)])
          // What was pinned is given up again, and would be collected.
          await blobs.unpin(`p/${count - 1}`)
          subject.clock.advance(1)
          await blobs.collect({ graceMs: 0 })
        }
        return count
      })()
      while ((await log.head('s')) === undefined) await new Promise((done) => setImmediate(done))
      await using backup = await openBackup(subject.engine.backup())
      over.abort()
      const count = await written
      const records = texts(await backup.engine.log.read('s', { limit: 10_000 }))
      expect(records.length).toBeGreaterThan(0)
      expect(records.length).toBeLessThanOrEqual(count)
      const { pins } = await backup.engine.blobs.pins('p/')
      for (const { digest } of pins) expect(await backup.engine.blobs.has(digest)).toBeDefined()
      expect(pins.length).toBeGreaterThan(0)
      // Nothing is held any more.
      const { digest } = await blobs.put(bytes('loose'))
      subject.clock.advance(1)
      await blobs.collect({ graceMs: 0 })
      expect(await blobs.has(digest)).toBeUndefined()
    })

    test('is made one at a time, and may be given up', async () => {
      await using subject = await makeEngine()
      const first = subject.engine.backup()[Symbol.asyncIterator]()
      const second = subject.engine.backup()[Symbol.asyncIterator]()
      const asked = first.next()
      await expectCode(second.next(), 'backlog_full')
      const { value } = await asked
      // The one that was refused has taken nothing from it.
      const third = subject.engine.backup()[Symbol.asyncIterator]()
      await expectCode(third.next(), 'backlog_full')
      const content = await Array.fromAsync((value as BackupFile).open())
      expect(Buffer.concat(content)).toHaveLength((value as BackupFile).sizeBytes)
      await first.return?.()
      await using backup = await openBackup(subject.engine.backup())
      expect(await backup.engine.log.head('s')).toBeUndefined()
      const signal = AbortSignal.abort(new Error('given up'))
      const aborted = subject.engine.backup({ signal })[Symbol.asyncIterator]()
      await expect(aborted.next()).rejects.toThrow('given up')
    })
  })
}

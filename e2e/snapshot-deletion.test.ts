import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Sandbox, SandlotError } from 'sandlot'
import { expect, test } from 'vitest'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const STARTS = 6

await story('a snapshot that is deleted', { pool: 1 }, (given) => {
  const saved = () => readdir(join(given.daemon.dataDirectory, 'checkpoints'))

  test.each(['filesystem', 'memory'] as const)(
    'while clones of it start (%s): each is whole, or says that it is gone',
    async (kind) => {
      const sandbox = await given.client.sandboxes.create({
        ...{ from: given.image, checkpointable: kind === 'memory' },
      })
      await sandbox.exec(`echo whole > /state; head -c 20000000 /dev/urandom > /rest`)
      const sum = async (of: Sandbox) => (await of.exec('cat /state; md5sum < /rest')).stdout
      const wanted = await sum(sandbox)
      const { id, image } = await sandbox.snapshot({ kind })
      await sandbox.stop()
      const ids = new Set(await given.daemon.hostIds())
      const begun = async () => (await given.daemon.ownedIds()).some((each) => !ids.has(each))
      const starting = Array.from({ length: STARTS }, () =>
        given.client.sandboxes.create({ from: id }).catch((error: unknown) => error),
      )
      await until('one of them is there', begun)
      await given.client.snapshots.delete(id, { force: true })
      const late = given.client.sandboxes.create({ from: id })
      await expect(late).rejects.toMatchObject({ code: 'snapshot_unknown' })
      const clones = await Promise.all(starting)
      for (const clone of clones) {
        if (clone instanceof Sandbox) {
          expect(await sum(clone)).toBe(wanted)
          await clone.stop()
          continue
        }
        expect(clone).toBeInstanceOf(SandlotError)
        expect((clone as SandlotError).code).toBe('snapshot_unknown')
      }
      expect(clones.filter((clone) => clone instanceof Sandbox)).not.toEqual([])
      expect(await saved()).toEqual([])
      expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
      // The next snapshot takes away what nobody uses any more.
      const next = await given.client.sandboxes.create({ from: given.image })
      await next.exec('echo other > /state')
      const other = await next.snapshot({ kind: 'filesystem' })
      await expect(given.client.images.get(image)).rejects.toMatchObject({ code: 'image_unknown' })
      await next.stop()
      await given.client.snapshots.delete(other.id)
    },
  )
})

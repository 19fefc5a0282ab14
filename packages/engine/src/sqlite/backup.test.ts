import { mkdir, readdir, rm, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { describeBackup } from '../conformance/describe-backup.ts'
import { bytes, expectCode } from '../conformance/engine-under-test.ts'
import { openSqliteEngine } from './open.ts'
import { makeSqliteEngine, temporaryDirectory } from './under-test.ts'

describeBackup(makeSqliteEngine, async (files) => {
  const place = await temporaryDirectory()
  for await (const { path, sizeBytes, open } of files) {
    const content = Buffer.concat(await Array.fromAsync(open()))
    expect(content.length).toBe(sizeBytes)
    await mkdir(dirname(join(place.path, path)), { recursive: true })
    await writeFile(join(place.path, path), content)
  }
  const engine = await openSqliteEngine({ directory: place.path })
  return {
    engine,
    async [Symbol.asyncDispose]() {
      await engine[Symbol.asyncDispose]()
      await place[Symbol.asyncDispose]()
    },
  }
})

test('nothing of a backup is left beside the database', async () => {
  await using place = await temporaryDirectory()
  await using engine = await openSqliteEngine({ directory: place.path })
  await engine.log.append('s', [bytes('a')])
  const before = await readdir(place.path)
  for await (const { open } of engine.backup()) await Array.fromAsync(open())
  const given = engine.backup()[Symbol.asyncIterator]()
  await given.next()
  await given.return?.()
  expect(await readdir(place.path)).toEqual(before)
})

test('a backup can be begun while transactions follow one another', async () => {
  await using place = await temporaryDirectory()
  await using engine = await openSqliteEngine({ directory: place.path })
  for (let backup = 0; backup < 3; backup++) {
    // More than one transaction takes: the next lies ready when the thread comes to the backup.
    const append = () => engine.log.append('s', [bytes('x'.repeat(20_000))])
    const appended = Array.from({ length: 4_000 }, append)
    const files = engine.backup()[Symbol.asyncIterator]()
    const first = await Promise.allSettled([files.next(), ...appended])
    expect(first[0]).toMatchObject({ value: { value: { path: 'engine.db' } } })
    await files.return?.()
  }
})

test.each(['empty', 'gone'])(
  'a database that is %s is refused where there was one',
  async (how) => {
    await using place = await temporaryDirectory()
    const database = join(place.path, 'engine.db')
    {
      await using engine = await openSqliteEngine({ directory: place.path })
      await engine.log.append('s', [bytes('a')])
    }
    if (how === 'empty') await truncate(database, 0)
    else await rm(database)
    await expectCode(openSqliteEngine({ directory: place.path }), 'directory_unusable')
    await expect(openSqliteEngine({ directory: place.path })).rejects.toMatchObject({
      message: expect.stringContaining(database),
      hint: expect.stringContaining('Restore a backup'),
    })
  },
)

test('a database that is damaged is refused, with what to do', async () => {
  await using place = await temporaryDirectory()
  await writeFile(join(place.path, 'engine.db'), 'no database at all. '.repeat(1_000))
  await expect(openSqliteEngine({ directory: place.path })).rejects.toMatchObject({
    code: 'directory_unusable',
    hint: expect.stringContaining('Restore a backup'),
  })
})

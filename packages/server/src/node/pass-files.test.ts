import type { SandlotError } from '@sandlot/protocol'
import { FakeDriver, GuestError } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import type { Lent } from './lend.ts'
import { passFiles } from './pass-files.ts'

const wait = { signal: new AbortController().signal }
const limits = { memoryBytes: 2 ** 30, cpus: 1, pidsMax: 64, diskBytes: 2 ** 28, nofileMax: 1_024 }

async function worlds() {
  const driver = new FakeDriver()
  const spec = { id: 'sb_1', layers: [], limits, hostname: 'h', detachedMs: 60_000 }
  const sandbox = await driver.create({ ...spec, id: 'sb_00000000000000000000' })
  await driver.openGradeWorld(sandbox, { world: 'grade', shows: [], beside: true })
  const explain = async (error: unknown) => error as SandlotError
  return {
    driver,
    guest: sandbox.guest,
    lent: { guest: sandbox.guest, explain } as unknown as Lent,
  }
}

test('files and directories come to the same places of another world, and what is not there is not missed', async () => {
  const { driver, guest, lent } = await worlds()
  await using _ = driver
  await guest.files.write('main', '/out/deep/a', Buffer.from('a'), { parents: true })
  await guest.files.write('main', '/alone', Buffer.from('b'), { mode: 0o755 })
  await guest.files.write('main', '/secret', Buffer.from('c'), {})
  await passFiles(lent, { world: 'grade', paths: ['/out', '/alone', '/nothing'] }, wait)
  const text = async (path: string) => {
    const { content } = await guest.files.read('grade', path)
    return Buffer.concat(await Array.fromAsync(content)).toString()
  }
  expect(await text('/out/deep/a')).toBe('a')
  expect(await text('/alone')).toBe('b')
  expect((await guest.files.stat('grade', '/alone')).mode).toBe(0o755)
  await expect(text('/secret')).rejects.toMatchObject({ code: 'not_found' })
})

test('what can not be unpacked is the doing of who left it there', async () => {
  const { driver, guest, lent } = await worlds()
  await using _ = driver
  await guest.files.write('main', '/out/a', Buffer.from('a'), { parents: true })
  const tar = {
    ...guest.tar,
    out: guest.tar.out.bind(guest.tar),
    in: () => Promise.reject(new GuestError('invalid', 'a device')),
  }
  const broken = { ...lent, guest: { files: guest.files, tar } } as unknown as Lent
  await expect(passFiles(broken, { world: 'grade', paths: ['/out'] }, wait)).rejects.toMatchObject({
    ...{ code: 'file_failed', message: "/out can't be passed on: a device" },
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkRunDirectory } from './announcement.ts'
import { testDirectories } from './testing/daemon.ts'

test('one that is too busy to answer has its run directory, what another took the port of has not', async () => {
  const hears = (socket: Socket) => void socket.on('error', () => {}).resume()
  await using silent = createServer(hears).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const gone = spawn('true')
  await once(gone, 'exit')
  const check = async (pid: number) => {
    await using directories = await testDirectories()
    const { dataDirectory, runDirectory } = directories
    await mkdir(runDirectory, { recursive: true })
    await writeFile(join(runDirectory, 'daemon.json'), JSON.stringify({ url, pid, dataDirectory }))
    await checkRunDirectory(runDirectory, 500)
  }
  const checks = await Promise.allSettled([check(process.pid), check(gone.pid ?? 0)])
  expect(checks).toMatchObject([
    { status: 'rejected', reason: { code: 'invalid_request' } },
    { status: 'fulfilled' },
  ])
})

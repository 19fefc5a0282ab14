import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { Interrupted } from './interruption.ts'
import { portForwardCommand } from './port-forward.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

test('whoever interrupts it before it listens waits for nothing', async () => {
  // A daemon that never answers: what was asked for ends with the interruption.
  const server = createServer(() => process.emit('SIGINT')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  vi.stubEnv('SANDLOT_URL', `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  vi.stubEnv('SANDLOT_API_KEY', 'sk_none')
  await expect(portForwardCommand('sb_any', ['0:1'])).rejects.toBeInstanceOf(Interrupted)
  server.closeAllConnections()
  server.close()
})

/** A name whose name server says something else each time that it is asked. */
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { MachineNames } from './names.ts'
import { nameServer } from './testing/name-server.ts'
import { listening, readAll, relayBed } from './testing/relay-bed.ts'

async function saying(text: string, host: string, port = 0) {
  const server = createServer((socket) => socket.end(text))
  if (port === 0) return await listening(server)
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  return Object.assign(server, { port })
}

test('a name that leads to another address with each answer is dialled where it was looked at', async () => {
  const allowed = await saying('allowed', '127.0.0.1')
  const inner = await saying('never to be seen', '127.0.0.2', allowed.port)
  let answers = 0
  await using server = await nameServer(() => {
    answers += 1
    return [`127.0.0.${answers % 4 < 2 ? 1 : 2}`]
  })
  // What is allowed by its own address stands for any public one: no packet leaves this machine.
  const names = new MachineNames({
    ...{ servers: [server.address], hostsPath: '/dev/null' },
    // No question is repeated because this process, and with it the server, stood still.
    serverMs: 60_000,
  })
  const target = `rebound.example:${allowed.port}`
  const bed = relayBed(
    { allow: [target, `127.0.0.1:${allowed.port}`] },
    { resolve: (name, signal) => names.resolve(name, signal) },
  )
  const heard: string[] = []
  for (let tries = 0; tries < 8; tries += 1) {
    const inside = bed.connect()
    inside.write(`CONNECT ${target} HTTP/1.1\r\n\r\n`)
    const said = await readAll(inside)
    heard.push(said)
    expect(said).toMatch(/^HTTP\/1.1 (200 [\s\S]*allowed$|403 .*leads to a private address)/)
  }
  expect(heard.join('')).not.toContain('never to be seen')
  // Each connection asked once, for both kinds of address, and believed that answer.
  expect(answers).toBe(2 * heard.length)
  const outcomes = bed.news.map(({ outcome }) => outcome)
  expect(outcomes.filter((outcome) => outcome === 'allowed')).not.toEqual([])
  expect(outcomes.filter((outcome) => outcome === 'private_address')).not.toEqual([])
  for (const each of [allowed, inner]) each.close()
})

import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Guest } from './guest.ts'
import { PipePair } from './testing/pipe-pair.ts'
import type { ScriptedAgent } from './testing/scripted-agent.ts'

let pipes: PipePair
let guest: Guest
let agent: ScriptedAgent

beforeEach(async () => {
  pipes = new PipePair()
  const pair = await pipes.pair({ 'relay.listen': (stream) => stream.result({}) })
  guest = pair.guest
  agent = pair.agent
})
afterEach(async () => await pipes[Symbol.asyncDispose]())

/** A process inside connects: its stream, and the connection that the daemon gets. */
async function connected() {
  const came = new Promise<Duplex>((resolve) => {
    guest.relay.onConnection = resolve
  })
  const stream = agent.open({ op: 'relay.connect' })
  return { stream, connection: await came }
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(chunks)).toString()
}

describe('the relay of a guest', () => {
  test('asks the agent to listen', async () => {
    expect(await guest.relay.listen(61_080)).toEqual({ connections: 0, unanswered: 0 })
    expect(agent.requests).toEqual([{ op: 'relay.listen', port: 61_080 }])
  })

  test('carries both directions, each with its end, and answers when both have ended', async () => {
    const { stream, connection } = await connected()
    await stream.send(1, Buffer.from('from inside'))
    stream.end(1)
    expect(await textOf(connection)).toBe('from inside')
    connection.end(Buffer.alloc(1_000_000, 'x'))
    expect(await textOf(stream.read(0))).toHaveLength(1_000_000)
    expect(await stream.done).toEqual({})
  })

  test('a connection that is destroyed is an error inside', async () => {
    const { stream, connection } = await connected()
    connection.destroy()
    await expect(stream.done).rejects.toMatchObject({ code: 'cancelled' })
  })

  test('one that has ended and is destroyed then still says all that was written', async () => {
    const { stream, connection } = await connected()
    const text = textOf(stream.read(0))
    connection.end(Buffer.alloc(1_000_000, 'x'))
    await once(connection, 'finish')
    connection.destroy()
    expect(await text).toHaveLength(1_000_000)
    expect(await stream.done).toEqual({})
  })

  test('one that the process resets is destroyed', async () => {
    const { stream, connection } = await connected()
    const closed = once(connection, 'close')
    stream.cancel()
    await closed
    await expect(stream.done).rejects.toMatchObject({ code: 'cancelled' })
  })

  test('one of a guest that is lost is destroyed', async () => {
    const { connection } = await connected()
    const closed = once(connection, 'close')
    await guest.close()
    await closed
  })

  test('a reader that stalls holds the sender up', async () => {
    const { stream, connection } = await connected()
    const sent = stream.send(1, Buffer.alloc(2 ** 20, 'y')).then(() => 'sent')
    await once(connection, 'readable')
    const turn = new Promise((resolve) => setImmediate(resolve, 'held up'))
    expect(await Promise.race([sent, turn])).toBe('held up')
    stream.end(1)
    expect(await textOf(connection)).toHaveLength(2 ** 20)
    expect(await sent).toBe('sent')
  })

  test('without anybody who takes connections they are refused, as is anything else', async () => {
    for (const op of ['relay.connect', 'exec.start']) {
      await expect(agent.open({ op }).done).rejects.toMatchObject({ code: 'unsupported' })
    }
  })
})

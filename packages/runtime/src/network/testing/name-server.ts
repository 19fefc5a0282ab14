/** For tests: a name server of this machine that answers as the test says. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import ipaddr from 'ipaddr.js'

const TYPES = { 1: 'A', 28: 'AAAA' } as const
const REPLY = 0x8180
const NO_SUCH_NAME = 3
const SERVER_FAILURE = 2

export interface NameServer extends AsyncDisposable {
  /** For `servers` of `MachineNames`. */
  readonly address: string
  /** `A name` or `AAAA name`, in the order that they came, each once however often it was asked. */
  readonly asked: Set<string>
}

/** Of each name its addresses; `never`: no answer, `broken`: a failure. Other names are unknown. */
export async function nameServer(
  names: (name: string) => readonly string[] | 'never' | 'broken' | undefined,
): Promise<NameServer> {
  const socket = createSocket('udp4')
  const asked = new Set<string>()
  socket.on('message', (message, { port, address }) => {
    const { name, type, end } = questionOf(message)
    asked.add(`${type} ${name}`)
    const found = names(name)
    if (found === 'never') return
    socket.send(answerTo(message.subarray(0, end), type, found), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    async [Symbol.asyncDispose]() {
      socket.close()
      await once(socket, 'close')
    },
  }
}

function questionOf(message: Buffer): { name: string; type: 'A' | 'AAAA'; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const type = message.readUInt16BE(at + 1)
  return { name: labels.join('.').toLowerCase(), type: TYPES[type as 1 | 28], end: at + 5 }
}

function answerTo(
  question: Buffer,
  type: 'A' | 'AAAA',
  found: readonly string[] | 'broken' | undefined,
): Buffer {
  const all = Array.isArray(found) ? found.map((text) => ipaddr.parse(text)) : []
  const records = all
    .filter((address) => address.kind() === (type === 'A' ? 'ipv4' : 'ipv6'))
    .map((address) => record(type, Buffer.from(address.toByteArray())))
  const head = Buffer.from(question)
  const code = found === 'broken' ? SERVER_FAILURE : found === undefined ? NO_SUCH_NAME : 0
  head.writeUInt16BE(REPLY | code, 2)
  head.writeUInt16BE(records.length, 6)
  head.writeUInt32BE(0, 8)
  return Buffer.concat([head, ...records])
}

function record(type: 'A' | 'AAAA', data: Buffer): Buffer {
  const head = Buffer.alloc(12)
  // The name of the question.
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type === 'A' ? 1 : 28, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(60, 6)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

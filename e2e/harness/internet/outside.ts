/** Run in the namespace of the outside: servers that answer with the address that they were asked from. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { OUTSIDE, PORTS } from './internet.ts'
import { answerQuestion } from './names.ts'

const tcp = createServer((socket) => {
  socket.on('error', () => {})
  socket.end(`hello ${socket.remoteAddress}`)
})
tcp.listen(PORTS.tcp, '0.0.0.0')

// Bound to each address, or an answer would come from another one than was asked.
const udp = [OUTSIDE.public, ...OUTSIDE.assigned].map((own) => {
  const socket = createSocket('udp4')
  socket.on('message', (message, { address, port }) => {
    socket.send(`hello ${message} ${address}`, port, address)
  })
  return socket.bind(PORTS.udp, own)
})

const names = createSocket('udp4')
names.on('message', (message, { address, port }) => {
  names.send(answerQuestion(message, OUTSIDE.public), port, address)
})
names.bind(PORTS.name, OUTSIDE.nameServer)

await Promise.all([tcp, ...udp, names].map((each) => once(each, 'listening')))
process.stdout.write('listening\n')

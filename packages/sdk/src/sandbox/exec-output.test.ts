import type { MuxStream } from '@sandlot/protocol/frames'
import { expect, test } from 'vitest'
import { ExecOutput } from './exec-output.ts'

/** A stream that has received what it is told, in the pieces in which it is read. */
function output(from = { stdout: 0, stderr: 0 }) {
  const received = { 1: 0, 2: 0 } as Record<number, number>
  const pieces: { channel: number; bytes: Uint8Array }[] = []
  const stream = {
    receivedBytes: (channel: number) => received[channel] ?? 0,
    readAll: async function* () {
      yield* pieces
    },
  } as unknown as MuxStream
  const made = new ExecOutput(stream, from)
  return {
    output: made,
    receive: (channel: number, sizeBytes: number) => {
      received[channel] = (received[channel] ?? 0) + sizeBytes
    },
    gap: (channel: number, offset: number, droppedBytes: number) =>
      made.mark({ kind: 'offset', channel, offset, droppedBytes }),
    piece: (channel: number, text: string) => pieces.push({ channel, bytes: Buffer.from(text) }),
  }
}

async function read(made: ExecOutput) {
  const pieces = await Array.fromAsync(made.pieces())
  return pieces.map(({ channel, bytes, offset, droppedBytes }) => [
    channel,
    Buffer.from(bytes).toString(),
    offset,
    droppedBytes,
  ])
}

test('positions go on from where an earlier connection ended', async () => {
  const { output: made, receive, piece } = output({ stdout: 10, stderr: 3 })
  piece(1, 'ab')
  piece(2, 'x')
  piece(1, 'c')
  receive(1, 3)
  receive(2, 1)
  expect(await read(made)).toEqual([
    ['stdout', 'ab', 10, 0],
    ['stderr', 'x', 3, 0],
    ['stdout', 'c', 12, 0],
  ])
  expect(made.end).toEqual({ stdout: 13, stderr: 4 })
})

test('a gap stands where it is, also for a reader that is behind and in the middle of a piece', async () => {
  const { output: made, receive, gap, piece } = output()
  receive(1, 4)
  gap(1, 100, 96)
  receive(1, 2)
  gap(1, 200, 98)
  gap(2, 7, 7)
  receive(1, 1)
  piece(1, 'headtaiz'.slice(0, 7))
  piece(2, 'e')
  receive(2, 1)
  expect(await read(made)).toEqual([
    ['stdout', 'head', 0, 0],
    ['stdout', 'ta', 100, 96],
    ['stdout', 'i', 200, 98],
    ['stderr', 'e', 7, 7],
  ])
  expect(made.end).toEqual({ stdout: 201, stderr: 8 })
})

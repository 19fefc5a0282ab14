import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { ClientContext } from '../connection/context.ts'
import { concatenate } from '../sandbox/bytes.ts'
import { blobOfStream } from './blob.ts'

/** A daemon that keeps what it is sent. */
function store() {
  const kept = new Map<string, Uint8Array>()
  const http = {
    exists: async (_: string, { parameters }: Asked) => kept.has(parameters.digest),
    send: async (_: string, { parameters, bytes }: Asked) => {
      const all = typeof bytes === 'function' ? await Array.fromAsync(bytes()) : [bytes]
      kept.set(parameters.digest, concatenate(all))
    },
  }
  return { kept, context: { http } as unknown as ClientContext }
}

interface Asked {
  readonly parameters: { readonly digest: string }
  readonly bytes: Uint8Array | (() => ReadableStream<Uint8Array>)
}

test.each([0, 1_000, 9 * 2 ** 20])(
  'a stream of %d bytes is kept under its digest',
  async (size) => {
    const { kept, context } = store()
    const bytes = new Uint8Array(size).map((_, at) => at * 7)
    async function* parts() {
      for (let at = 0; at < size; at += 2 ** 20) yield bytes.subarray(at, at + 2 ** 20)
    }
    await using blob = await blobOfStream(parts())
    await blob.send(context)
    const { digest } = blob
    expect(digest).toBe(`sha256:${createHash('sha256').update(bytes).digest('hex')}`)
    expect(Buffer.compare(kept.get(digest) as Uint8Array, bytes)).toBe(0)
  },
)

test('a stream that is given up is closed', async () => {
  const controller = new AbortController()
  let closed = false
  async function* endless() {
    try {
      for (let part = 0; ; part++) {
        if (part === 3) controller.abort(new Error('enough'))
        yield new Uint8Array(8)
      }
    } finally {
      closed = true
    }
  }
  const { signal } = controller
  await expect(blobOfStream(endless(), { signal })).rejects.toThrow('enough')
  expect(closed).toBe(true)
})

import { expect, test } from 'vitest'
import { GpuRoom, type HeldGpus } from './gpu-room.ts'

const never = new AbortController().signal
const LATER = { waitMs: 60_000, signal: never }

function room(...models: string[]): GpuRoom {
  const devices = models.map((model, index) => ({ name: `g${index}`, model }))
  return new GpuRoom({ gpus: async () => ({ devices, problems: ['a.yaml:3: broken'] }) })
}

/** What has been got by now. */
function got(asked: Promise<HeldGpus>): { names?: readonly string[] } {
  const seen: { names?: readonly string[] } = {}
  void asked.then(({ names }) => {
    seen.names = names
  })
  return seen
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

test('each to one at a time; the next in line gets it when it is given back', async () => {
  const gpus = room('NVIDIA H100')
  const first = await gpus.take({ count: 1 }, LATER)
  expect(first.names).toEqual(['g0'])
  const second = got(gpus.take({ type: 'H100', count: 1 }, LATER))
  await settled()
  expect(second.names).toBeUndefined()
  expect(gpus.waiting).toBe(1)
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  await settled()
  expect(second.names).toEqual(['g0'])
})

test('a wait for one model holds up no other, and many small wishes starve no large one', async () => {
  const gpus = room('NVIDIA H100', 'NVIDIA H100', 'NVIDIA L4')
  const one = await gpus.take({ type: 'H100', count: 1 }, LATER)
  const both = got(gpus.take({ type: 'H100', count: 2 }, LATER))
  await settled()
  const small = got(gpus.take({ type: 'H100', count: 1 }, LATER))
  const other = got(gpus.take({ type: 'L4', count: 1 }, LATER))
  await settled()
  expect(other.names).toEqual(['g2'])
  expect(small.names).toBeUndefined()
  one[Symbol.dispose]()
  await settled()
  expect(both.names).toEqual(['g0', 'g1'])
  expect(small.names).toBeUndefined()
})

test('what can never be had is refused with what there is; what can’t be had now, as capacity', async () => {
  const gpus = room('NVIDIA L4', 'NVIDIA L4')
  await expect(gpus.take({ type: 'H100', count: 1 }, LATER)).rejects.toMatchObject({
    code: 'invalid_request',
    message:
      'resources.gpu: 1 of H100 are asked for, the machine has 2 × NVIDIA L4; a.yaml:3: broken',
  })
  await expect(gpus.take({ count: 3 }, LATER)).rejects.toThrow('3 are asked for')
  gpus.occupy(['g0', 'g1'])
  const now = gpus.take({ count: 1 }, { waitMs: 0, signal: never })
  await expect(now).rejects.toMatchObject({ code: 'capacity' })
  expect([gpus.count({ count: 1 }, 'all'), gpus.count({ count: 1 }, 'free')]).toEqual([2, 0])
})

test('who gives up waiting lets those behind pass', async () => {
  const gpus = room('L4', 'L4')
  await gpus.take({ count: 1 }, LATER)
  const leaving = new AbortController()
  const large = gpus.take({ count: 2 }, { waitMs: 60_000, signal: leaving.signal })
  await settled()
  const small = got(gpus.take({ count: 1 }, LATER))
  await settled()
  expect(small.names).toBeUndefined()
  leaving.abort(new Error('gone'))
  await expect(large).rejects.toThrow('gone')
  await settled()
  expect(small.names).toEqual(['g1'])
})

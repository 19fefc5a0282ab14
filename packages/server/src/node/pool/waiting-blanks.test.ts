import type { Blank, Layer, WorldAhead } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { SERVER_LIMITS } from '../../limits.ts'
import { WaitingBlanks } from './waiting-blanks.ts'

const blankOf = (hostId: string): Blank => ({ hostId, gone: new Promise(() => {}) })
const layersOf = (...names: string[]): Layer[] =>
  names.map((name) => ({ digest: `sha256:${name}`, path: `/${name}` }))
const limits = { memoryBytes: 2, cpus: 1, pidsMax: 1, diskBytes: 1, nofileMax: 1 }
const box = (...layers: string[]): WorldAhead => ({
  layers: layersOf(...layers),
  limits,
  hostname: 'box',
})

test('the one with the least left to do is taken, and nothing that is of another sort', () => {
  const waiting = new WaitingBlanks()
  waiting.add(blankOf('other'), { world: box('b') })
  waiting.add(blankOf('plain'), {})
  waiting.add(blankOf('mounted'), { layers: layersOf('a', 'z') })
  waiting.add(blankOf('open'), { world: box('a') })
  const taken = [1, 2, 3, 4].map(() => waiting.take(box('a'))?.hostId)
  expect(taken).toEqual(['open', 'mounted', 'plain', undefined])
  expect(waiting.take({ ...box('b'), limits: { ...limits, cpus: 2 } })).toBeUndefined()
  expect(waiting.take(box('b'))?.hostId).toBe('other')
  expect(waiting.size).toBe(0)
})

test('files on the disk have a place only where a world was opened for them', () => {
  const waiting = new WaitingBlanks()
  const large = { ...box('a'), limits: { ...limits, diskBytes: 2 } }
  waiting.add(blankOf('plain'), {})
  waiting.add(blankOf('mounted'), { layers: layersOf('a') })
  waiting.add(blankOf('small'), { world: box('a') })
  expect(waiting.take(large)).toBeUndefined()
  waiting.add(blankOf('large'), { world: large })
  expect(waiting.take(large)?.hostId).toBe('large')
})

test('half of them are made for who came last, the rest can become anything', () => {
  const waiting = new WaitingBlanks()
  expect(waiting.kitOfNext([], 4)).toEqual({})
  waiting.take(box('a'))
  const world = box('a')
  const { layers } = world
  expect(waiting.kitOfNext([], 4)).toEqual({ world })
  expect(waiting.kitOfNext([{ world }], 4)).toEqual({ world })
  waiting.add(blankOf('open'), { world })
  expect(waiting.kitOfNext([{ world }], 4)).toEqual({ layers })
  expect(waiting.kitOfNext([], 1)).toEqual({ layers })
  waiting.forgetWanted()
  expect(waiting.kitOfNext([], 4)).toEqual({})
})

test('more layers than are mounted ahead are not', () => {
  const waiting = new WaitingBlanks()
  const names = Array.from({ length: SERVER_LIMITS.layersAhead + 1 }, (_, index) => `${index}`)
  waiting.take(box(...names))
  expect(waiting.kitOfNext([], 4)).toEqual({})
})

test('what was made for others goes once they have stayed away', () => {
  const waiting = new WaitingBlanks()
  waiting.add(blankOf('stale'), { world: box('a') })
  for (let take = 1; take < SERVER_LIMITS.takesAlike; take++) waiting.take(box('b'))
  expect(waiting.takeStale()).toBeUndefined()
  waiting.take(box('b'))
  expect(waiting.takeStale()?.hostId).toBe('stale')
  expect(waiting.takeStale()).toBeUndefined()
})

test('where there are too many those of one sort go first', () => {
  const waiting = new WaitingBlanks()
  waiting.add(blankOf('plain'), {})
  waiting.add(blankOf('open'), { world: box('a') })
  waiting.add(blankOf('mounted'), { layers: layersOf('a') })
  const spared = [1, 2, 3, 4].map(() => waiting.takeSpare()?.hostId)
  expect(spared).toEqual(['open', 'plain', 'mounted', undefined])
})

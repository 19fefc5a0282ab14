import { expect, test } from 'vitest'
import { type Candidate, imagesToCollect } from './collection.ts'
import { defaultImageConfig } from './image.ts'

function candidate(
  id: string,
  usedAtMs: number,
  layers: Record<string, number>,
  intermediate = false,
): Candidate {
  const image = {
    id,
    digest: id,
    layers: Object.entries(layers).map(([digest, sizeBytes]) => ({
      digest,
      path: digest,
      sizeBytes,
    })),
    config: defaultImageConfig,
    sizeBytes: 0,
    createdAtMs: 0,
    source: { kind: 'tar', blob: '' } as const,
    ...(intermediate ? { intermediate } : {}),
  }
  return { image, usedAtMs }
}

function gone(candidates: Candidate[], sizeBytesMax: number, pinned: string[] = []): string[] {
  return imagesToCollect(candidates, {
    sizeBytesMax,
    isPinned: (id) => pinned.includes(id),
    usedBeforeMs: 100,
  }).map(({ id }) => id)
}

const base = { base: 10 }

test('nothing goes while there is room; layers that are shared count once', () => {
  const all = [candidate('a', 1, base), candidate('b', 2, { ...base, b: 5 })]
  expect(gone(all, 15)).toEqual([])
  expect(gone(all, 14)).toEqual(['b'])
})

test('intermediate results go first, then what was used the longest ago', () => {
  const all = [
    candidate('old', 1, { o: 5 }),
    candidate('young', 3, { y: 5 }),
    candidate('step', 4, { s: 5 }, true),
    candidate('older', 0, { p: 5 }),
  ]
  expect(gone(all, 15)).toEqual(['step'])
  expect(gone(all, 0)).toEqual(['step', 'older', 'old', 'young'])
})

test('what frees nothing stays while something else does', () => {
  const all = [
    candidate('step', 0, base, true),
    candidate('built', 1, { ...base, top: 5 }),
    candidate('other', 2, { other: 5 }),
  ]
  expect(gone(all, 15)).toEqual(['built'])
  expect(gone(all, 0)).toEqual(['built', 'step', 'other'])
})

test('images that share all their layers go together', () => {
  const all = [candidate('one', 1, base), candidate('two', 2, base)]
  expect(gone(all, 5)).toEqual(['one', 'two'])
})

test('what is in use, or was a moment ago, stays', () => {
  const all = [candidate('pinned', 1, { p: 5 }), candidate('used', 100, { u: 5 })]
  expect(gone(all, 0, ['pinned'])).toEqual([])
})

import { expect, test } from 'vitest'
import { sharesOf } from './capacity-shares.ts'

function need(name: string, [wanted, held, sandboxes, free]: [number, number, number, number]) {
  return { name, wanted, held, capacity: { node: 'n', sandboxes, free, creating: 1 } }
}

function shares(...needs: ReturnType<typeof need>[]) {
  return Object.fromEntries(sharesOf(needs).map(({ need, sandboxes }) => [need.name, sandboxes]))
}

test('one run alone may have all', () => {
  expect(shares(need('a', [5, 0, 100, 100]))).toEqual({ a: 100 })
  expect(shares(need('a', [1_000, 0, 100, 100]))).toEqual({ a: 100 })
})

test('what others than runs hold is not divided', () => {
  expect(shares(need('a', [1_000, 30, 100, 20]))).toEqual({ a: 50 })
})

test('everybody gets what he wants up to an equal part', () => {
  expect(
    shares(
      need('a', [1_000, 0, 90, 90]),
      need('b', [1_000, 0, 90, 90]),
      need('c', [10, 0, 90, 90]),
    ),
  ).toEqual({ a: 40, b: 40, c: 10 })
})

test('parts are counted in shares of the node where sandboxes differ in size', () => {
  expect(shares(need('small', [100, 0, 100, 100]), need('large', [100, 0, 10, 10]))).toEqual({
    ...{ small: 50, large: 5 },
  })
})

test('a run that does not fit is granted one: the node says what is wrong with it', () => {
  expect(shares(need('a', [10, 0, 0, 0]))).toEqual({ a: 1 })
})

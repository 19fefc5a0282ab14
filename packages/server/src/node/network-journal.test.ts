import type { RelayNews } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { SERVER_LIMITS } from '../limits.ts'
import { NetworkJournal } from './network-journal.ts'

const { journalBurst, journalLines, journalLinesASecond, journalSavedLines } = SERVER_LIMITS
const ALL = 10_000

function setup() {
  const clock = { nowMs: 1_000 }
  const journal = new NetworkJournal(() => clock.nowMs)
  const refuse = (target: string, detail = 'why') =>
    journal.note({ target, protocol: 'connect', outcome: 'not_allowed', detail }, 'agent')
  return { journal, clock, refuse }
}

function opening(): { news: RelayNews; close: () => Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<{
    sentBytes: number
    receivedBytes: number
    durationMs: number
  }>()
  const opened = { rule: '*.example', address: '93.184.216.34', closed: promise }
  return {
    news: { target: 'a.example:443', protocol: 'socks', outcome: 'allowed', opened },
    close: async () => {
      resolve({ sentBytes: 1, receivedBytes: 2, durationMs: 3 })
      await promise
    },
  }
}

test('a connection is told with its rule when it opens, and with its bytes when it closes', async () => {
  const { journal, refuse } = setup()
  const { news, close } = opening()
  journal.note(news, 'setup')
  refuse('b.example:443')
  journal.policyChanged('agent')
  await close()
  const of = { target: 'a.example:443', protocol: 'socks', phase: 'setup', atMs: 1_000 }
  expect(journal.read(0, ALL)).toEqual({
    items: [
      { kind: 'opened', seq: 1, ...of, rule: '*.example', address: '93.184.216.34' },
      expect.objectContaining({ kind: 'refused', seq: 2, reason: 'not_allowed', detail: 'why' }),
      { kind: 'policy', seq: 3, atMs: 1_000, phase: 'agent' },
      { kind: 'closed', seq: 4, ...of, opened: 1, sentBytes: 1, receivedBytes: 2, durationMs: 3 },
    ],
    next: 5,
    over: false,
  })
})

test('a loop inside costs so many lines, and one says how many are missing', () => {
  const { journal, clock, refuse } = setup()
  for (let at = 0; at < 100_000; at += 1) refuse(`n${at}.example:443`)
  clock.nowMs += 1_000
  for (let at = 0; at < 100_000; at += 1) refuse(`m${at}.example:443`)
  const { items } = journal.read(0, ALL)
  expect(items).toHaveLength(journalBurst + 1 + journalLinesASecond + 1)
  const dropped = items.filter(({ kind }) => kind === 'dropped')
  expect(dropped).toMatchObject([
    { count: 100_000 - journalBurst },
    { count: 100_000 - journalLinesASecond },
  ])
})

test('whoever reads late is told how many lines are gone, and goes on from its cursor', () => {
  const { journal, clock, refuse } = setup()
  for (let at = 0; at < 2_000; at += 1) {
    clock.nowMs += 1_000
    refuse(`n${at}.example:443`)
  }
  const first = journal.read(1, 3)
  expect(first.items).toMatchObject([
    { kind: 'dropped', count: 2_000 - journalLines },
    { seq: 2_001 - journalLines },
    { seq: 2_002 - journalLines },
  ])
  expect(first.next).toBe(2_003 - journalLines)
  expect(journal.read(first.next, 1).items).toMatchObject([{ seq: first.next }])
  expect(journal.read(2_001, 10)).toEqual({ items: [], next: 2_001, over: false })
  expect(journal.saved().lines).toHaveLength(journalSavedLines)
})

test('what comes from inside is cut to its length', () => {
  const { journal, refuse } = setup()
  refuse('x'.repeat(10_000), 'y'.repeat(10_000))
  expect(JSON.stringify(journal.read(0, 1)).length).toBeLessThan(1_200)
})

test('whoever waits gets the next line, or the end, or leaves', async () => {
  const { journal, refuse } = setup()
  const { signal } = new AbortController()
  const waiting = journal.wait(1, ALL, signal)
  refuse('a.example:443')
  expect((await waiting).items).toMatchObject([{ target: 'a.example:443' }])
  const leaving = new AbortController()
  const left = journal.wait(2, ALL, leaving.signal)
  leaving.abort()
  expect(await left).toEqual({ items: [], next: 2, over: false })
  const ending = journal.wait(2, ALL, signal)
  journal.end()
  expect(await ending).toEqual({ items: [], next: 2, over: true })
})

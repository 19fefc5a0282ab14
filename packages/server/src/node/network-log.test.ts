import type { RelayNews } from '@sandlot/runtime'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { SERVER_LIMITS } from '../limits.ts'
import { connectionLog } from './network-log.ts'

const { connectionLines, connectionLinesAMinute } = SERVER_LIMITS

function setup() {
  const lines: { level: number; target?: string; outcome?: string; unlogged?: number }[] = []
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) })
  const clock = { nowMs: 0 }
  const tell = connectionLog({ log, now: () => clock.nowMs }, 'sb_1')
  const asked = (target: string, outcome: RelayNews['outcome']) =>
    tell({ target, protocol: 'connect', outcome })
  return { lines, asked, clock }
}

const [INFO, WARN] = [30, 40]

test('a refusal is a warning, what is allowed is not; each target stands there once', () => {
  const { lines, asked } = setup()
  for (let times = 0; times < 3; times += 1) {
    asked('a.example:443', 'allowed')
    asked('b.example:443', 'not_allowed')
    asked('b.example:443', 'limit')
  }
  expect(lines).toMatchObject([
    { level: INFO, sandbox: 'sb_1', target: 'a.example:443', outcome: 'allowed' },
    { level: WARN, target: 'b.example:443', outcome: 'not_allowed' },
    { level: WARN, target: 'b.example:443', outcome: 'limit' },
  ])
})

test('a loop over many names fills no log', () => {
  const { lines, asked, clock } = setup()
  const loop = (from: number) => {
    for (let at = 0; at < 1_000; at += 1) asked(`n${from + at}.example:443`, 'not_allowed')
  }
  loop(0)
  // One more says that there are more.
  expect(lines).toHaveLength(connectionLinesAMinute + 1)
  clock.nowMs = 60_000
  loop(1_000)
  expect(lines).toHaveLength(2 * (connectionLinesAMinute + 1))
  expect(lines[connectionLinesAMinute + 1]).toMatchObject({
    target: 'n1000.example:443',
    unlogged: 1_000 - connectionLinesAMinute,
  })
  for (let minute = 2; minute < 100; minute += 1) {
    clock.nowMs = minute * 60_000
    loop(minute * 1_000)
  }
  expect(lines.filter(({ target }) => target !== undefined)).toHaveLength(connectionLines)
})

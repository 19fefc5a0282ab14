import { describe, expect, test } from 'vitest'
import { type EndEvidence, judgeFate } from './fate.ts'

const quiet = { oomKills: 0, limitHit: false, limitBytes: 2 ** 30, peakBytes: 2 ** 20 }
const end = (over: Partial<EndEvidence>): EndEvidence => ({
  cause: 'lost',
  memory: quiet,
  lastWords: '',
  ...over,
})

describe('fate', () => {
  test.each<[string, Partial<EndEvidence>, string]>([
    ['a stop', { cause: 'stop' }, 'stopped'],
    ['a kill at its own limit', { memory: { ...quiet, oomKills: 1, limitHit: true } }, 'oom_limit'],
    ['a kill below its limit', { memory: { ...quiet, oomKills: 2 } }, 'oom_host'],
    ['a limit that was met and survived', { memory: { ...quiet, limitHit: true } }, 'lost'],
    [
      'a stop after the kernel was faster',
      { cause: 'stop', memory: { ...quiet, oomKills: 1, limitHit: true } },
      'oom_limit',
    ],
    ['an agent that ended itself', { lastWords: 'agent: expired lifetime' }, 'expired'],
    ['a broken protocol', { cause: 'protocol' }, 'protocol'],
    ['a kill from outside', {}, 'lost'],
  ])('%s', (_, over, kind) => {
    expect(judgeFate(end(over)).kind).toBe(kind)
  })

  test('evidence of memory is told in numbers', () => {
    const memory = {
      oomKills: 1,
      limitHit: true,
      limitBytes: 64 * 2 ** 20,
      peakBytes: 64 * 2 ** 20,
    }
    expect(judgeFate(end({ memory })).detail).toBe(
      'oom_kill 1, peak 64 MiB of 64 MiB: its limit was hit',
    )
  })
})

import { systemClock } from '@sandlot/engine'
import type { RefusedPackets } from '@sandlot/runtime'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { openNode } from '../testing/node.ts'
import { NetworkJournals } from './network-journals.ts'
import { journalOf } from './networks.ts'
import { uncounted } from './numbers.ts'
import { RefusedPacketsNews } from './refused-packets.ts'

test('what the machine dropped is in the log of its sandbox, counted, and in the daemon’s log once', async () => {
  await using at = await openNode()
  await at.node.acquire(at.request())
  const { entries } = at.node.sandboxes
  const [entry] = entries.values()
  if (!entry?.sandbox) throw new Error('no sandbox')
  const { hostId } = entry.sandbox
  const to = (target: string, of = hostId): RefusedPackets => ({
    ...{ hostId: of, target, protocol: 'tcp' },
  })
  const answers = [
    [],
    [to('10.0.0.1:443'), to('10.9.9.9:1', 'another')],
    [to('10.0.0.1:443'), to('169.254.169.254:80')],
  ]
  const counted: string[] = []
  const lines: string[] = []
  const parts = {
    driver: { refusedPackets: async () => answers.shift() ?? [] },
    ...{ clock: systemClock, journals: new NetworkJournals(at.engine) },
    log: pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) }),
    numbers: { ...uncounted, connected: (outcome: string) => void counted.push(outcome) },
  }
  const news = new RefusedPacketsNews(parts)
  for (let looks = 0; looks < 4; looks += 1) await news.tell(entries)
  const journal = await journalOf(parts, entry)
  expect(journal.read(1, 10).items).toMatchObject(
    ['10.0.0.1:443', '10.0.0.1:443', '169.254.169.254:80'].map((target) => ({
      ...{ kind: 'refused', target, protocol: 'tcp', reason: 'private_address' },
    })),
  )
  expect(counted).toHaveLength(3)
  expect(lines.map((line) => JSON.parse(line).target)).toEqual([
    '10.0.0.1:443',
    '169.254.169.254:80',
  ])
})

import type { Clock } from '@sandlot/engine'
import { SandlotError, type UsageReport } from '@sandlot/protocol'
import type { Handlers } from '../http/call.ts'
import type { Node } from '../node/node.ts'
import { type BookLine, DAY_MS, DayBook, HOUR_MS } from './day-book.ts'
import { idleOf, linesOf, totalOf } from './report.ts'

const DAYS_DEFAULT = 30
const NO_USE = { cpuMs: 0, networkBytes: 0 }

/** A caller is told of its own project; the machine's own key, of all, and of what was nobody's. */
export function usageHandlers(node: Node, clock: Pick<Clock, 'now'>): Pick<Handlers, 'getUsage'> {
  return {
    getUsage: async ({ caller, query }): Promise<UsageReport> => {
      const nowMs = clock.now()
      const toMs = query.to === undefined ? nowMs : Date.parse(query.to)
      const fromMs =
        query.from === undefined ? toMs - DAYS_DEFAULT * DAY_MS : Date.parse(query.from)
      if (fromMs >= toMs) {
        throw new SandlotError('invalid_request', '`from` is not before `to`', {
          hint: 'Both are times, as 2026-11-30T12:00:00Z.',
        })
      }
      const hours = {
        fromMs: Math.floor(fromMs / HOUR_MS) * HOUR_MS,
        toMs: Math.ceil(toMs / HOUR_MS) * HOUR_MS,
      }
      const by = query.by ?? 'day'
      const lines = [
        ...(await node.meter.ledger.lines(hours.fromMs, hours.toMs)),
        ...goingOn(node, nowMs, hours),
      ]
      const admin = caller.isOperator
      const theirs = lines.filter(({ project }) => admin || project === caller.project)
      return {
        from: new Date(hours.fromMs).toISOString(),
        to: new Date(hours.toMs).toISOString(),
        by,
        currency: node.meter.prices?.currency ?? null,
        lines: linesOf(theirs, by),
        total: totalOf(theirs),
        ...(admin ? { idle: idleOf(lines) } : {}),
      }
    },
  }
}

/** What sandboxes have taken that live: it is recorded when they end. */
function goingOn(
  node: Node,
  nowMs: number,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): BookLine[] {
  const book = new DayBook()
  for (const { record, state } of node.sandboxes.entries.values()) {
    if (state === 'starting' || state === 'paused' || state === 'resuming') continue
    const stretch = node.meter.stretchOf(record, nowMs, NO_USE)
    if (stretch) book.add(stretch)
  }
  return [...book.lines()].filter(({ hourMs }) => hourMs >= fromMs && hourMs < toMs)
}

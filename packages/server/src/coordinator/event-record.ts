import type { RunEvent } from '@sandlot/core'
import { COORDINATOR_LIMITS } from './limits.ts'

/**
 * Records of a log of events. The events of one batch were decided together and are replayed together or not at all, however
 * many records they need: the first character says `=` the whole batch, `<` its first part, `-` a further one, `>` its last.
 */
export function encodeBatch(events: readonly RunEvent[]): Uint8Array[] {
  const parts: string[] = []
  let texts: string[] = []
  let length = 0
  for (const event of events) {
    const text = JSON.stringify(event)
    if (texts.length > 0 && length + text.length > COORDINATOR_LIMITS.eventRecordCharacters) {
      parts.push(texts.join(','))
      texts = []
      length = 0
    }
    texts.push(text)
    length += text.length + 1
  }
  if (texts.length > 0) parts.push(texts.join(','))
  return parts.map((part, index) => Buffer.from(`${markOf(index, parts.length)}[${part}]`))
}

/** Puts batches together again. A batch whose last part is missing was never decided on by anybody: it is left out. */
export function createBatchDecoder(): (record: Uint8Array) => RunEvent[] {
  let parts: RunEvent[] = []
  return (record) => {
    const text = Buffer.from(record.buffer, record.byteOffset, record.length).toString()
    const mark = text.charAt(0)
    if (!'=<->'.includes(mark)) {
      throw new Error('a record of events has no mark: its log was written by another program')
    }
    const events = JSON.parse(text.slice(1)) as RunEvent[]
    switch (mark) {
      case '=':
        parts = []
        return events
      case '<':
        parts = events
        return []
      case '-':
        parts.push(...events)
        return []
      default: {
        const whole = [...parts, ...events]
        parts = []
        return whole
      }
    }
  }
}

function markOf(index: number, count: number): string {
  if (count === 1) return '='
  if (index === 0) return '<'
  return index === count - 1 ? '>' : '-'
}

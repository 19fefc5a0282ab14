/** What becomes of a task after a try: pure. */
import { SandlotError, type TaskError } from '@sandlot/protocol'
import type { QueueRecord, TaskTries } from './records.ts'

/**
 * How a try ended. `error`: the handler's own doing, which may go well the next time. `infra`: the container was lost while it had the
 * input. `fatal`: nothing helps. `idle`: it was never begun.
 */
export type TryEnd =
  | { readonly kind: 'value'; readonly json: string | null; readonly blob: string | null }
  | { readonly kind: 'error' | 'infra' | 'fatal'; readonly error: TaskError }
  | { readonly kind: 'idle' }

export type Step =
  | { readonly kind: 'done' }
  | { readonly kind: 'dead'; readonly error: TaskError }
  | { readonly kind: 'again'; readonly delayMs: number; readonly tries: TaskTries }

export const NO_TRIES: TaskTries = { seen: 0, errors: 0, lost: 0 }

const BACKOFF_MS_MAX = 3_600_000

/** Deliveries of which nothing is known ended with their daemon, while a container may have had the input. */
export function triesBefore(deliveries: number, known: TaskTries): TaskTries {
  const unheard = Math.max(0, deliveries - 1 - known.seen)
  return { ...known, seen: known.seen + unheard, lost: known.lost + unheard }
}

/** Whether a task that was lost so often may be begun once more. */
export function mayBegin({ lost }: TaskTries, { infra }: QueueRecord['retry']): boolean {
  return lost <= infra
}

export function nextStep(end: TryEnd, before: TaskTries, retry: QueueRecord['retry']): Step {
  const seen = before.seen + 1
  switch (end.kind) {
    case 'value':
      return { kind: 'done' }
    case 'idle':
      return { kind: 'again', delayMs: 0, tries: { ...before, seen } }
    case 'fatal':
      return { kind: 'dead', error: end.error }
    case 'error': {
      const errors = before.errors + 1
      if (errors > retry.error) return { kind: 'dead', error: end.error }
      const delayMs = Math.min(retry.backoffMs * 2 ** (errors - 1), BACKOFF_MS_MAX)
      return { kind: 'again', delayMs, tries: { ...before, seen, errors } }
    }
    case 'infra': {
      const lost = before.lost + 1
      if (lost > retry.infra) return { kind: 'dead', error: end.error }
      return { kind: 'again', delayMs: 0, tries: { ...before, seen, lost } }
    }
  }
}

/** An error of the catalogue as a result has it. */
export function taskErrorOf({ code, message }: SandlotError): TaskError {
  return { code, name: 'SandlotError', message }
}

export function lostError(why: string): TaskError {
  return taskErrorOf(new SandlotError('function_lost', why))
}

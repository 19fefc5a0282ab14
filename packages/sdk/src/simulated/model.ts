import { createRandom } from '@sandlot/core/random'
import { SandlotError } from '@sandlot/protocol'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { ModelError } from '../rollout/model-error.ts'
import { durations, pass } from './durations.ts'

export interface SimulatedModelOptions<Prompt, Answer> {
  /** What it says: `random` is a number from 0 to 1 of its own for each call. */
  readonly answer: (prompt: Prompt, random: number) => Answer | Promise<Answer>
  /** How long it takes: `'2s'`, `'uniform:1s,5s'`, `'exponential:3s'`, or heavy-tailed, as `'lognormal:2s,0.8'` (median, sigma). */
  readonly latency: string
  /** Share of the calls that fail with a `ModelError`. Default 0. */
  readonly failures?: number
  /** Calls that it answers at once; others wait in line. Default: all. */
  readonly slots?: number
  /** The same seed gives the same latencies, failures and numbers, call by call. Default 0. */
  readonly seed?: number
}

export interface SimulatedModelCall {
  /** Makes what is drawn for this call its own, whichever is made first: the episode's `seed`. Default: the number of the call. */
  readonly seed?: number
  readonly signal?: AbortSignal
}

/**
 * A model server that is none: for runs that size a pool, or try a trainer, before there is a GPU. Call it within `model(…)` of an
 * episode, as a real one.
 */
export function simulatedModel<Prompt, Answer>(
  options: SimulatedModelOptions<Prompt, Answer>,
): (prompt: Prompt, call?: SimulatedModelCall) => Promise<Answer> {
  refuseUnknown(options, ['answer', 'latency', 'failures', 'slots', 'seed'])
  const { answer, failures = 0, slots = Number.POSITIVE_INFINITY, seed = 0 } = options
  const takesMs = durations('latency', options.latency)
  refuse(!(failures >= 0 && failures <= 1), 'failures', failures, 'a share from 0 to 1')
  refuse(!(slots >= 1), 'slots', slots, 'a number from 1')
  const line: (() => void)[] = []
  let busy = 0
  let calls = 0

  /** In line, until there is a slot. */
  async function enter(signal: AbortSignal | undefined): Promise<void> {
    if (busy < slots) {
      busy++
      return
    }
    await new Promise<void>((resolve, reject) => {
      const abort = () => {
        line.splice(line.indexOf(go), 1)
        reject(signal?.reason)
      }
      const go = () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }
      signal?.addEventListener('abort', abort, { once: true })
      line.push(go)
    })
  }

  /** The slot goes to whoever waits longest. */
  function leave(): void {
    const next = line.shift()
    if (next) next()
    else busy--
  }

  return async (prompt, call = {}) => {
    const random = createRandom(mix(seed, call.seed ?? calls))
    calls++
    call.signal?.throwIfAborted()
    await enter(call.signal)
    try {
      const ms = takesMs(random)
      const fails = random.chance(failures)
      await pass(ms, call.signal)
      if (fails) throw new ModelError('the simulated model failed')
    } finally {
      leave()
    }
    return await answer(prompt, random.next())
  }
}

function refuse(wrong: boolean, option: string, value: number, wanted: string): void {
  if (!wrong) return
  throw new SandlotError('invalid_request', `${option}: ${value} is not ${wanted}`)
}

function mix(seed: number, call: number): number {
  return (Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(call + 1, 0x85ebca6b)) >>> 0
}

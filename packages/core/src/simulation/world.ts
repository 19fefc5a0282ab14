import type { Effect } from '../run/effect.ts'
import type { InputBody } from '../run/input.ts'
import type { Link } from './link.ts'
import type { Random } from './random.ts'
import type { Scenario } from './scenario.ts'
import type { Timeline } from './timeline.ts'
import type { Truth } from './truth.ts'

/** What the simulated parts share. */
export interface World {
  readonly timeline: Timeline
  readonly random: Random
  readonly scenario: Scenario
  readonly link: Link
  readonly truth: Truth
  /**
   * To the coordinator; false where it is down. `durable` is called once what followed is in the log. A sender
   * that must be heard repeats until then.
   */
  tell(input: InputBody, durable?: () => void): boolean
  /** Whether the run is over: nobody begins anything new. */
  over(): boolean
}

/** One sandbox, and the attempt for which it was made. */
export interface OfSandbox {
  readonly episode: number
  readonly attempt: number
  readonly sandbox: string
}

export type EffectOf<T extends Effect['type']> = Extract<Effect, { type: T }>

/** Repeats a word to the coordinator until it is durable, or nobody cares any more. */
export function insist(world: World, input: InputBody, wanted: () => boolean, done: () => void) {
  let heard = false
  const say = () => {
    if (heard || !wanted()) return
    world.link.send(() =>
      world.tell(input, () => {
        if (heard) return
        heard = true
        done()
      }),
    )
    world.timeline.after(2_000, say)
  }
  say()
}

import type { InputBody } from '../run/input.ts'
import { insist, type World } from './world.ts'

/** Words to the coordinator, in order: the next is said when the one before is durable. */
export interface Outbox {
  say(input: InputBody): void
}

/** `wanted`: whether anybody still cares; `said`: a word is durable. */
export function createOutbox(
  world: World,
  wanted: () => boolean,
  said: (input: InputBody) => void,
): Outbox {
  const waiting: InputBody[] = []
  let sending = false

  function send(): void {
    const input = waiting[0]
    sending = input !== undefined
    if (!input) return
    insist(world, input, wanted, () => {
      waiting.shift()
      said(input)
      send()
    })
  }

  return {
    say(input) {
      waiting.push(input)
      if (!sending) send()
    },
  }
}

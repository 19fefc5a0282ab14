import type { LeaseOffer } from '../run/effect.ts'
import type { InputBody } from '../run/input.ts'
import { drawReport } from './fake-report.ts'
import { insist, type OfSandbox, type World } from './world.ts'

/** A process with the user's code: it works, hangs, lies and dies. */
export interface FakeWorker {
  readonly name: string
  readonly alive: boolean
  /** Changes with every connection: what was sent on an old one never arrives. */
  readonly connection: number | null
  offer(offer: LeaseOffer): void
  cancel(token: number): void
  /** The connection broke; it comes back by itself. */
  disconnect(): void
  die(): void
}

interface Held {
  readonly offer: LeaseOffer
  /** Words to the coordinator, in order: each is repeated until it is durable. */
  readonly outbox: InputBody[]
  sending: boolean
}

export interface WorkerHooks {
  isAlive(of: OfSandbox): boolean
}

export function createFakeWorker(world: World, name: string, hooks: WorkerHooks): FakeWorker {
  const { timeline, random, scenario, truth } = world
  const { faults } = scenario
  const held = new Map<number, Held>()
  let alive = true
  let connection: number | null = null
  let connections = 0

  /** The first word on a connection: it is heard in order and once, or the connection is gone. */
  function attach(): void {
    if (!alive || connection !== null || world.over()) return
    const mine = ++connections
    const tokens = [...held.keys()]
    const input = { type: 'worker_attached', worker: name, slots: scenario.slots } as const
    timeline.after(random.between(0.1, 5), () => {
      if (!alive || connections !== mine) return
      if (world.tell({ ...input, held: tokens })) connection = mine
      else timeline.after(1_000, attach)
    })
  }

  function beat(): void {
    if (!alive || world.over()) return
    if (connection !== null) {
      const lagMs = random.chance(0.1) ? random.between(0, 3_000) : 0
      world.link.send(() => world.tell({ type: 'worker_renewed', worker: name, lagMs }))
    }
    timeline.after(15_000, beat)
  }

  function say(lease: Held, input: InputBody): void {
    lease.outbox.push(input)
    if (!lease.sending) send(lease)
  }

  function send(lease: Held): void {
    const input = lease.outbox[0]
    lease.sending = input !== undefined
    if (!input) return
    const { token } = lease.offer
    const wanted = () => alive && held.get(token) === lease
    insist(world, input, wanted, () => {
      lease.outbox.shift()
      if (input.type === 'reported') held.delete(token)
      send(lease)
    })
  }

  function work(lease: Held): void {
    const { offer } = lease
    const address = { episode: offer.episode, attempt: offer.attempt, token: offer.token }
    say(lease, { type: 'lease_taken', ...address })
    const mine = () => alive && held.get(offer.token) === lease
    if (random.chance(faults.agentMisbehaves / 3)) return // never returns
    let delayMs = random.spread(offer.phase === 'agent' ? scenario.agentMs : scenario.gradeMs, 1)
    if (offer.phase === 'agent' && random.chance(0.5)) {
      const callMs = random.chance(faults.modelFails) ? 40_000 : random.spread(2_000, 1)
      timeline.after(delayMs / 2, () => {
        if (mine()) say(lease, { type: 'model_started', ...address })
      })
      timeline.after(delayMs / 2 + callMs, () => {
        if (mine()) say(lease, { type: 'model_ended', ...address })
      })
      delayMs += callMs
    }
    timeline.after(delayMs, () => {
      if (!mine()) return
      const report = drawReport(world, offer, hooks.isAlive(offer))
      say(lease, { type: 'reported', ...address, report })
    })
  }

  attach()
  timeline.after(15_000, beat)
  return {
    name,
    get alive() {
      return alive
    },
    get connection() {
      return connection
    },
    offer(offer) {
      if (!alive || held.has(offer.token)) return
      const lease: Held = { offer, outbox: [], sending: false }
      held.set(offer.token, lease)
      if (offer.phase === 'agent') {
        const { sandbox } = offer
        truth.begun.set(sandbox, (truth.begun.get(sandbox) ?? 0) + 1)
      }
      work(lease)
    },
    cancel(token) {
      // Some code ignores its signal and goes on: what it says is refused by its token.
      if (random.chance(0.7)) held.delete(token)
    },
    disconnect() {
      if (!alive) return
      connection = null
      connections++
      const back = random.chance(0.7) ? random.between(100, 30_000) : random.between(30_000, 90_000)
      timeline.after(back, attach)
    },
    die() {
      alive = false
      connection = null
      held.clear()
    },
  }
}

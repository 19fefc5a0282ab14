import type { LeaseOffer } from '../run/effect.ts'
import type { InputBody } from '../run/input.ts'
import { drawReport } from './fake-report.ts'
import { checkTimeout } from './invariants.ts'
import { createOutbox, type Outbox } from './outbox.ts'
import type { OfSandbox, World } from './world.ts'

/** A process with the user's code: it works, hangs, lies and dies. */
export interface FakeWorker {
  readonly name: string
  readonly alive: boolean
  /** Changes with every connection: what was sent on an old one never arrives. */
  readonly connection: number | null
  offer(offer: LeaseOffer): void
  cancel(token: number, cause: string): void
  /** The connection broke; it comes back by itself. */
  disconnect(): void
  die(): void
}

interface Held {
  readonly offer: LeaseOffer
  readonly begunAtMs: number
  /** `awayMs` of the worker when it began. */
  readonly awayAtMs: number
  calledModel: boolean
  readonly outbox: Outbox
}

export interface WorkerHooks {
  isAlive(of: OfSandbox): boolean
}

export function createFakeWorker(world: World, name: string, hooks: WorkerHooks): FakeWorker {
  const { timeline, random, scenario, truth } = world
  const held = new Map<number, Held>()
  /** An offer may come again, even after its report. */
  const seen = new Set<number>()
  let alive = true
  let connection: number | null = null
  let connections = 0
  /** All the time without a connection, and since when there is none. */
  let awayMs = 0
  let awaySinceMs = timeline.nowMs

  /** The first word on a connection: it is heard in order and once, or the connection is gone. */
  function attach(): void {
    if (!alive || connection !== null || world.over()) return
    const mine = ++connections
    const tokens = [...held.keys()]
    const input = { type: 'worker_attached', worker: name, slots: scenario.slots } as const
    timeline.after(random.between(0.1, 5), () => {
      if (!alive || connections !== mine) return
      if (world.tell({ ...input, held: tokens })) {
        connection = mine
        awayMs += timeline.nowMs - awaySinceMs
      } else timeline.after(1_000, attach)
    })
  }

  function beat(): void {
    if (!alive || world.over()) return
    if (connection !== null) {
      const lagMs = random.chance(0.1) ? random.between(0, 3_000) : 0
      world.link.send(() => world.tell({ type: 'worker_renewed', worker: name, lagMs }))
    }
    // A wedged event loop: alive and connected, and not heard for longer than a lease lives.
    const wedged = random.chance(scenario.faults.wedges)
    timeline.after(wedged ? 90_000 : 15_000, beat)
  }

  function isMine(lease: Held): boolean {
    return alive && held.get(lease.offer.token) === lease
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
      if (!alive || seen.has(offer.token)) return
      seen.add(offer.token)
      const outbox = createOutbox(
        world,
        () => isMine(lease),
        (input) => {
          if (input.type === 'reported') held.delete(offer.token)
        },
      )
      const begunAtMs = timeline.nowMs
      const lease: Held = { offer, outbox, begunAtMs, awayAtMs: awayMs, calledModel: false }
      held.set(offer.token, lease)
      if (offer.phase === 'agent') {
        const { sandbox } = offer
        truth.begun.set(sandbox, (truth.begun.get(sandbox) ?? 0) + 1)
        truth.versions.set(sandbox, offer.policyVersion)
      }
      work(world, lease, { isMine: () => isMine(lease), isAlive: () => hooks.isAlive(offer) })
    },
    cancel(token, cause) {
      const lease = held.get(token)
      if (lease && !lease.calledModel && cause.includes('used up its time within')) {
        const away = awayMs - lease.awayAtMs
        checkTimeout(timeline.nowMs - lease.begunAtMs - away, lease.offer.timeoutMs)
      }
      if (lease && scenario.policy.stopMs > 0 && random.chance(0.7)) {
        stop(world, lease, () => isMine(lease))
        return
      }
      // Some code ignores its signal and goes on: what it says is refused by its token.
      if (random.chance(0.7)) held.delete(token)
    },
    disconnect() {
      if (!alive) return
      if (connection !== null) awaySinceMs = timeline.nowMs
      connection = null
      connections++
      const soon = random.chance(0.7)
      const back = soon ? random.between(100, 9_000) : random.between(9_000, 90_000)
      timeline.after(back, attach)
    },
    die() {
      alive = false
      connection = null
      held.clear()
    },
  }
}

/** What the user's code does with its lease: it thinks, perhaps asks a model, and reports. */
function work(
  world: World,
  lease: Held,
  ask: { readonly isMine: () => boolean; readonly isAlive: () => boolean },
): void {
  const { timeline, random, scenario } = world
  const { faults } = scenario
  const { offer, outbox } = lease
  const address = { episode: offer.episode, attempt: offer.attempt, token: offer.token }
  const later = (delayMs: number, input: () => InputBody) =>
    timeline.after(delayMs, () => {
      if (ask.isMine()) outbox.say(input())
    })
  outbox.say({ type: 'lease_taken', ...address })
  if (random.chance(faults.agentMisbehaves / 3)) return // never returns
  let delayMs = random.spread(offer.phase === 'agent' ? scenario.agentMs : scenario.gradeMs, 1)
  if (offer.phase === 'agent' && random.chance(0.5)) {
    lease.calledModel = true
    const callMs = random.chance(faults.modelFails) ? 40_000 : random.spread(2_000, 1)
    later(delayMs / 2, () => ({ type: 'model_started', ...address }))
    later(delayMs / 2 + callMs, () => ({ type: 'model_ended', ...address }))
    delayMs += callMs
  }
  if (offer.phase === 'agent' && random.chance(0.3)) {
    later(delayMs / 3, () => ({
      type: 'lease_noted',
      note: `${offer.sandbox} came so far`,
      ...address,
    }))
  }
  later(delayMs, () => ({
    type: 'reported',
    ...address,
    report: drawReport(world, offer, ask.isAlive()),
  }))
}

/** A program that is told to stop: it ends, or had ended before and what it left is only slow to come. */
function stop(world: World, { offer, outbox }: Held, isMine: () => boolean): void {
  const { timeline, random, truth } = world
  const { episode, attempt, token, timeoutMs } = offer
  const address = { episode, attempt, token }
  const wasOver = random.chance(0.3)
  const agentMs = wasOver ? timeoutMs / 2 : timeoutMs
  if (wasOver) {
    truth.revoked.delete(token)
    outbox.say({ type: 'agent_ended', ...address, agentMs })
  }
  timeline.after(random.between(1, wasOver ? 60_000 : 5_000), () => {
    if (!isMine()) return
    const report = wasOver ? drawReport(world, offer, false) : ({ kind: 'aborted' } as const)
    outbox.say({ type: 'reported', ...address, agentMs, report })
  })
}

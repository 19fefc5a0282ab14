import type { SandboxFate } from '../run/input.ts'
import type { Leaves, Left } from '../run/run.ts'
import { COLLECTED } from './leave-invariants.ts'
import type { EffectOf, OfSandbox, World } from './world.ts'

/** A machine of sandboxes: slow, forgetful and mortal. */
export interface FakeNode {
  readonly name: string
  readonly up: boolean
  acquire(effect: EffectOf<'acquire_sandbox'>): void
  /** Of one sandbox, or of whatever the attempt has or would get. */
  release(of: Released): void
  isAlive(sandbox: string): boolean
  /** Sandboxes that live, for the coordinator that asks what is there. */
  held(): readonly OfSandbox[]
  /** What it knows of the end of a sandbox that ended by itself. */
  fateOf(sandbox: string): SandboxFate | undefined
  die(): void
}

interface Released extends Omit<OfSandbox, 'sandbox'> {
  readonly sandbox: string | null
  readonly leaves?: Leaves
}

export function createFakeNode(world: World, name: string): FakeNode {
  const { timeline, random, scenario, link, truth } = world
  const { faults } = scenario
  const alive = new Map<string, OfSandbox>()
  const fates = new Map<string, SandboxFate>()
  /** Attempts whose release came, also before their creation: they get no sandbox any more. */
  const released = new Set<string>()
  const creating = new Set<string>()
  let made = 0
  let up = true

  function announce(held: OfSandbox): void {
    link.send(() => world.tell({ type: 'sandbox_ready', ...held, node: name, createMs: 5 }))
  }

  function dieBySelf(held: OfSandbox, cause: SandboxFate['cause'], told: boolean): void {
    const { sandbox } = held
    if (!alive.delete(sandbox)) return
    const fate = { cause, evidence: `simulated ${cause}` }
    fates.set(sandbox, fate)
    truth.deaths.set(sandbox, { atMs: timeline.nowMs, cause })
    if (told) link.send(() => world.tell({ type: 'sandbox_lost', ...held, fate }))
  }

  function create(effect: EffectOf<'acquire_sandbox'>): void {
    const key = keyOf(effect)
    creating.delete(key)
    if (!up || released.has(key)) return
    const { episode, attempt } = effect
    if (random.chance(faults.createFails)) {
      const fault = random.pick(['platform', 'platform', 'capacity', 'caller'] as const)
      released.add(key)
      const failure = { type: 'sandbox_failed', fault, cause: 'simulated' } as const
      link.send(() => world.tell({ ...failure, episode, attempt }))
      return
    }
    const held = { sandbox: `sb_${name}_${made++}`, episode, attempt }
    alive.set(held.sandbox, held)
    announce(held)
    if (!random.chance(faults.sandboxDies)) return
    const causes = ['oom_limit', 'oom_host', 'lost', 'lost', 'stopped', 'lifetime'] as const
    const cause = random.pick(causes)
    timeline.after(random.spread(scenario.agentMs, 1), () => dieBySelf(held, cause, true))
  }

  function leftOf({ artifacts, snapshot }: Leaves, sandbox: string | null): Left {
    const isKept = snapshot && random.chance(0.8)
    return {
      artifacts: artifacts ? [{ name: COLLECTED, blob: 'sha256:simulated', sizeBytes: 1 }] : [],
      leftOut: [],
      kept: isKept ? `sn_${sandbox}` : null,
    }
  }

  return {
    name,
    get up() {
      return up
    },
    acquire(effect) {
      const key = keyOf(effect)
      if (!up || released.has(key) || creating.has(key)) return
      const there = [...alive.values()].find((held) => keyOf(held) === key)
      if (there) {
        announce(there)
      } else if (!random.chance(faults.createHangs)) {
        creating.add(key)
        timeline.after(random.spread(50, 1), () => create(effect))
      }
    },
    release(of) {
      if (!up) return
      const { episode, attempt, sandbox } = of
      released.add(keyOf(of))
      for (const held of [...alive.values()]) {
        if (held.sandbox === sandbox || (sandbox === null && keyOf(held) === keyOf(of))) {
          alive.delete(held.sandbox)
        }
      }
      const fate = sandbox === null ? undefined : fates.get(sandbox)
      const answer = { type: 'torn_down', episode, attempt, sandbox } as const
      const left = of.leaves && !fate ? leftOf(of.leaves, sandbox) : undefined
      const more = { ...(fate ? { fate } : {}), ...(left ? { left } : {}) }
      timeline.after(random.between(1, left ? 3_000 : 20), () =>
        link.send(() => world.tell({ ...answer, ...more })),
      )
    },
    isAlive: (sandbox) => alive.has(sandbox),
    held: () => [...alive.values()],
    fateOf: (sandbox) => fates.get(sandbox),
    die() {
      up = false
      for (const held of [...alive.values()]) dieBySelf(held, 'lost', random.chance(0.7))
      timeline.after(random.between(1_000, 120_000), () => {
        up = true
        released.clear()
      })
    },
  }
}

function keyOf(of: { readonly episode: number; readonly attempt: number }): string {
  return `${of.episode}/${of.attempt}`
}

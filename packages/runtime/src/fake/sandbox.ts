import type { Blank, Fate, FateKind, Sandbox, SandboxSpec, Usage, WorldAhead } from '../driver.ts'
import { GuestLost } from '../guest/guest-error.ts'
import { FakeGuest } from './guest.ts'
import type { FakeCheckpoint } from './machine.ts'
import type { FakeClock, FakeScript } from './script.ts'

let lastHostId = 0

/** One fake sandbox: blank, then dressed, then gone. */
export class FakeSandbox {
  readonly hostId = `fake${++lastHostId}`
  usage: Usage = {
    cpuMs: 0,
    memoryBytes: 10 * 2 ** 20,
    memoryPeakBytes: 10 * 2 ** 20,
    diskBytes: 0,
  }
  /** What it was restored from. */
  readonly restored: FakeCheckpoint | undefined
  /** What its world was opened with, ahead of its owner. */
  opened: WorldAhead | undefined
  readonly #script: FakeScript
  readonly #clock: FakeClock
  readonly #gone = Promise.withResolvers<Fate>()
  #dressed: { readonly spec: SandboxSpec; readonly guest: FakeGuest } | undefined
  #cancelLifetime: (() => void) | undefined
  #fate: Fate | undefined

  constructor(script: FakeScript, clock: FakeClock, restored?: FakeCheckpoint) {
    this.restored = restored
    this.#script = script
    this.#clock = clock
  }

  get dressed(): boolean {
    return this.#dressed !== undefined
  }

  get fate(): Fate | undefined {
    return this.#fate
  }

  /** Empty while blank. */
  get id(): string {
    return this.#dressed?.spec.id ?? ''
  }

  get spec(): SandboxSpec {
    return this.#dress().spec
  }

  get guest(): FakeGuest {
    return this.#dress().guest
  }

  dress(spec: SandboxSpec): void {
    this.#dressed = { spec, guest: this.#attach(spec) }
    if (spec.lifetimeMs === undefined) return
    this.#cancelLifetime = this.#clock.after(spec.lifetimeMs, () =>
      this.end('expired', 'its lifetime was over'),
    )
  }

  blank(): Blank {
    return { hostId: this.hostId, gone: this.#gone.promise }
  }

  sandbox(): Sandbox {
    const { id, spec, guest } = this
    const heldUpMs = async () => 0
    const memoryBytes = async () => this.usage.memoryBytes
    const gone = this.#gone.promise
    return { id, hostId: this.hostId, spec, guest, heldUpMs, memoryBytes, gone }
  }

  /** The first end is the one that counts. */
  end(kind: FateKind, detail: string): Fate {
    if (this.#fate) return this.#fate
    this.#fate = { kind, detail, usage: this.usage }
    this.#cancelLifetime?.()
    this.#dressed?.guest.lose(new GuestLost('exited', `${kind}: ${detail}`))
    this.#gone.resolve(this.#fate)
    return this.#fate
  }

  #attach(spec: SandboxSpec): FakeGuest {
    return new FakeGuest({
      sandbox: spec.id,
      script: this.#script,
      clock: this.#clock,
      die: (kind) => this.end(kind, 'a command ended it'),
    })
  }

  #dress() {
    if (!this.#dressed) throw new Error(`${this.hostId} is blank`)
    return this.#dressed
  }
}

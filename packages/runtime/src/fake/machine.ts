import type { CheckpointFacts } from '../driver.ts'
import type { FakeMemory } from './guest.ts'
import type { FakeSandbox } from './sandbox.ts'

/** A saved sandbox: its worlds, and what a restore compares. */
export interface FakeCheckpoint {
  readonly facts: CheckpointFacts
  readonly memory: FakeMemory
}

/** Where fake sandboxes live. It outlives a driver, as a machine outlives a daemon. */
export class FakeMachine {
  /** By directory; there is nothing in it, but that it is there. */
  readonly checkpoints = new Map<string, FakeCheckpoint>()
  readonly #sandboxes = new Map<string, FakeSandbox>()

  get size(): number {
    return this.#sandboxes.size
  }

  add(sandbox: FakeSandbox): FakeSandbox {
    this.#sandboxes.set(sandbox.hostId, sandbox)
    return sandbox
  }

  get(hostId: string): FakeSandbox | undefined {
    return this.#sandboxes.get(hostId)
  }

  remove(hostId: string): void {
    this.#sandboxes.delete(hostId)
  }

  all(): readonly FakeSandbox[] {
    return [...this.#sandboxes.values()]
  }
}

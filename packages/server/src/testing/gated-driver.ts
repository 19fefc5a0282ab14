import { FakeDriver } from '@sandlot/runtime'

type Gated = 'create' | 'restore' | 'checkpoint' | 'stop'

/** A driver whose calls wait at a gate while that is closed for them. */
export class GatedDriver extends FakeDriver {
  /** Calls that came to the gate since it was closed. */
  arrived = 0
  #gate: Promise<void> | undefined
  #gated: readonly Gated[] = []

  /** Gives what opens it again. */
  closeGate(...calls: Gated[]): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#gate = promise
    this.#gated = calls
    this.arrived = 0
    return resolve
  }

  override async create(...given: Parameters<FakeDriver['create']>) {
    await this.#wait('create')
    return await super.create(...given)
  }

  override async restore(...given: Parameters<FakeDriver['restore']>) {
    await this.#wait('restore')
    return await super.restore(...given)
  }

  override async checkpoint(...given: Parameters<FakeDriver['checkpoint']>) {
    await this.#wait('checkpoint')
    return await super.checkpoint(...given)
  }

  override async stop(...given: Parameters<FakeDriver['stop']>) {
    await this.#wait('stop')
    return await super.stop(...given)
  }

  async #wait(call: Gated): Promise<void> {
    if (!this.#gated.includes(call)) return
    this.arrived += 1
    await this.#gate
  }
}

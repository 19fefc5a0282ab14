import type { Container, ContainerInput, ContainerSource, OpenContainer } from '../container.ts'
import { lostError, type TryEnd } from '../tries.ts'

type End = Exclude<TryEnd, { kind: 'idle' }>

/** Containers in memory. The handler gets the input's JSON and gives the value's, throws, or never ends. */
export class FakeContainers {
  readonly opened: OpenContainer[] = []
  readonly inputs: ContainerInput[] = []
  /** Inputs whose time was over, files that were brought, and those that were taken. */
  readonly aborted: string[] = []
  readonly brought: string[] = []
  readonly collected: string[] = []
  /** Those that live. */
  readonly live = new Set<FakeContainer>()
  /** Fails each start, where it is set. */
  failure: Error | undefined
  handler: (json: string | null, input: ContainerInput) => Promise<string | null> | string | null

  constructor(handler: FakeContainers['handler'] = (json) => json) {
    this.handler = handler
  }

  readonly source: ContainerSource = async (request) => {
    if (this.failure) throw this.failure
    this.opened.push(request)
    const container = new FakeContainer(this, `sb_${this.opened.length}`)
    this.live.add(container)
    return container
  }
}

export class FakeContainer implements Container {
  readonly id: string
  readonly gone: Promise<void>
  readonly #all: FakeContainers
  readonly #gone = Promise.withResolvers<void>()
  readonly #lost = Promise.withResolvers<End>()

  constructor(all: FakeContainers, id: string) {
    this.#all = all
    this.id = id
    this.gone = this.#gone.promise
  }

  async run(input: ContainerInput): Promise<End> {
    this.#all.inputs.push(input)
    return await Promise.race([this.#run(input), this.#lost.promise])
  }

  cancel(): void {}

  abort(id: string): void {
    this.#all.aborted.push(id)
  }

  async bring(name: string): Promise<void> {
    this.#all.brought.push(name)
  }

  async collect(name: string): Promise<void> {
    this.#all.collected.push(name)
  }

  /** It dies under what it works on. */
  lose(): void {
    this.#all.live.delete(this)
    this.#lost.resolve({ kind: 'infra', error: lostError(`the container ${this.id} was lost`) })
    this.#gone.resolve()
  }

  async close(): Promise<void> {
    this.lose()
  }

  async #run(input: ContainerInput): Promise<End> {
    try {
      return { kind: 'value', json: await this.#all.handler(input.json, input), blob: null }
    } catch (error) {
      const { name, message } = error as Error
      return { kind: 'error', error: { code: null, name, message } }
    }
  }
}

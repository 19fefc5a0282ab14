import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Lease, Queue } from '../queue.ts'
import { bytes, expectCode, type MakeEngine, text } from './engine-under-test.ts'
import type { FakeClock } from './fake-clock.ts'

interface Message {
  readonly body: string
  readonly priority: number
  readonly order: number
  /** Ready from then on. */
  dueAtMs: number
  /** Of the latest lease, as long as it may still finish. */
  holder: Lease | undefined
  leased: boolean
  deliveries: number
}

type Command =
  | { type: 'put'; priority: number; delayMs: number }
  | { type: 'lease'; max: number; leaseMs: number }
  | { type: 'ack' | 'nack' | 'extend'; which: number; ms: number }
  | { type: 'advance'; ms: number }
  | { type: 'crash' }

const ms = fc.constantFrom(0, 10, 50, 100)
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.record({
      type: fc.constant('put' as const),
      priority: fc.integer({ min: -2, max: 2 }),
      delayMs: ms,
    }),
  },
  {
    weight: 30,
    arbitrary: fc.record({
      type: fc.constant('lease' as const),
      max: fc.integer({ min: 1, max: 4 }),
      leaseMs: fc.constantFrom(10, 50, 100),
    }),
  },
  {
    weight: 40,
    arbitrary: fc.record({
      type: fc.constantFrom('ack' as const, 'nack' as const, 'extend' as const),
      which: fc.nat(30),
      ms,
    }),
  },
  { weight: 20, arbitrary: fc.record({ type: fc.constant('advance' as const), ms }) },
  { weight: 1, arbitrary: fc.constant<Command>({ type: 'crash' }) },
)

/** Any course of calls does what the model says. */
export function describeQueueModel(makeEngine: MakeEngine): void {
  test('queue: behaves like its model, whatever the course of calls', async () => {
    await using subject = await makeEngine()
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 60 }), async (commands) => {
        const course = new Course(`q/${run++}`, subject.clock)
        for (const step of commands) {
          if (step.type === 'crash') await subject.crash()
          else await course.step(subject.engine.queue, step)
          expect(await subject.engine.queue.depth(course.name)).toEqual(course.depth())
        }
      }),
      { numRuns: 60 },
    )
  })
}

class Course {
  readonly name: string
  readonly #clock: FakeClock
  #messages: Message[] = []
  readonly #leases: Lease[] = []
  #order = 0
  #token = 0

  constructor(name: string, clock: FakeClock) {
    this.name = name
    this.#clock = clock
  }

  depth() {
    const count = (fits: (message: Message) => boolean) => this.#messages.filter(fits).length
    const ready = (message: Message) => message.dueAtMs <= this.#clock.now()
    return {
      ready: count(ready),
      delayed: count((message) => !ready(message) && !message.leased),
      leased: count((message) => !ready(message) && message.leased),
    }
  }

  async step(queue: Queue, step: Exclude<Command, { type: 'crash' }>): Promise<void> {
    if (step.type === 'advance') this.#clock.advance(step.ms)
    else if (step.type === 'put') await this.#put(queue, step)
    else if (step.type === 'lease') await this.#lease(queue, step)
    else await this.#finish(queue, step)
  }

  async #put(queue: Queue, { priority, delayMs }: Extract<Command, { type: 'put' }>) {
    const order = this.#order++
    await queue.put(this.name, bytes(`${order}`), { priority, delayMs })
    this.#messages.push({
      body: `${order}`,
      priority,
      order,
      dueAtMs: this.#clock.now() + delayMs,
      holder: undefined,
      leased: false,
      deliveries: 0,
    })
  }

  async #lease(queue: Queue, { max, leaseMs }: Extract<Command, { type: 'lease' }>) {
    const must = this.#messages
      .filter((message) => message.dueAtMs <= this.#clock.now())
      .sort((a, b) => b.priority - a.priority || a.order - b.order)
      .slice(0, max)
    const leases = await queue.lease(this.name, { max, leaseMs })
    expect(leases.map((lease) => text(lease.body))).toEqual(must.map((message) => message.body))
    for (const [index, lease] of leases.entries()) {
      const message = must[index]
      if (message === undefined) continue
      message.dueAtMs = this.#clock.now() + leaseMs
      message.holder = lease
      message.leased = true
      message.deliveries += 1
      expect(lease.deliveries).toBe(message.deliveries)
      expect(lease.expiresAtMs).toBe(message.dueAtMs)
      expect(lease.token).toBeGreaterThan(this.#token)
      this.#token = lease.token
      this.#leases.push(lease)
    }
  }

  async #finish(
    queue: Queue,
    step: { type: 'ack' | 'nack' | 'extend'; which: number; ms: number },
  ) {
    const lease = this.#leases[step.which % Math.max(1, this.#leases.length)]
    if (lease === undefined) return
    const message = this.#messages.find((other) => other.holder === lease)
    const delayMs = step.type === 'extend' ? step.ms + 1 : step.ms
    const call =
      step.type === 'ack'
        ? queue.ack(lease)
        : step.type === 'nack'
          ? queue.nack(lease, { delayMs })
          : queue.extend(lease, delayMs)
    if (message === undefined) {
      await expectCode(call, 'lease_lost')
      return
    }
    await call
    if (step.type === 'ack') {
      this.#messages = this.#messages.filter((other) => other !== message)
      return
    }
    message.dueAtMs = this.#clock.now() + delayMs
    message.leased = step.type === 'extend'
    if (step.type === 'nack') message.holder = undefined
  }
}

import { type Engine, openSqliteEngine } from '@sandlot/engine'
import {
  type QueuePutInput,
  type QueueResult,
  type QueueTasksPut,
  queuePut,
} from '@sandlot/protocol'
import { pino } from 'pino'
import { createManualClock, type ManualClock } from '../../coordinator/simulated/clock.ts'
import { testDirectories } from '../../testing/daemon.ts'
import { until } from '../../testing/until.ts'
import { Queues } from '../queues.ts'
import { FakeContainers } from './fake-containers.ts'

export const PROJECT = 'default'
const NEVER = new AbortController().signal

/** Queues over a real engine, with containers in memory and a clock that stands still until a test moves it. */
export class TestQueues implements AsyncDisposable {
  readonly clock: ManualClock = createManualClock()
  readonly containers: FakeContainers
  readonly #stack = new AsyncDisposableStack()
  readonly #directory: string
  engine!: Engine
  /** By how much the engine's clock is ahead: as after the process stood still, no timer is called. */
  aheadMs = 0
  /** What the daemon is set up for, from its next start on. */
  retainMs: number | undefined
  queues!: Queues

  private constructor(containers: FakeContainers, directory: string) {
    this.containers = containers
    this.#directory = directory
  }

  static async open(handler?: FakeContainers['handler']): Promise<TestQueues> {
    const directories = await testDirectories()
    const opened = new TestQueues(new FakeContainers(handler), `${directories.dataDirectory}/e`)
    opened.#stack.use(directories)
    await opened.#start()
    return opened
  }

  /** As a daemon that is killed and started again: nothing of the first is closed but the engine's files. */
  async killAndStart(): Promise<void> {
    await this.engine[Symbol.asyncDispose]()
    await this.#start()
  }

  async put(name: string, body: Partial<QueuePutInput> = {}) {
    const wanted = queuePut.parse({ kind: 'tasks', ...body })
    return await this.queues.put(PROJECT, name, wanted, null)
  }

  /** One whose function is a content that is there. */
  async withFunction(name: string, body: Partial<QueuePutInput> = {}) {
    const { digest } = await this.engine.blobs.put(Buffer.from('export default 1'))
    const spec = { bundle: digest, export: 'default', label: 'f.ts', ...body.function }
    return await this.put(name, { ...body, function: spec })
  }

  async add(
    name: string,
    inputs: readonly unknown[],
    more: Partial<QueueTasksPut['tasks'][0]> = {},
  ) {
    const tasks = inputs.map((input) => ({
      ...{ id: crypto.randomUUID(), json: JSON.stringify(input) },
      ...more,
    }))
    return await this.queues.putTasks(PROJECT, name, { tasks })
  }

  async results(name: string): Promise<QueueResult[]> {
    return (await this.queues.results(PROJECT, name, { limit: 1_000 }, NEVER)).results
  }

  /** Once there are so many. */
  async resultsOf(name: string, count: number): Promise<QueueResult[]> {
    await until(async () => (await this.results(name)).length >= count)
    return await this.results(name)
  }

  /** Time passes in steps until something holds. */
  async passUntil(stepMs: number, holds: () => boolean | Promise<boolean>): Promise<void> {
    await until(async () => {
      if (await holds()) return true
      this.clock.advance(stepMs)
      return false
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.queues[Symbol.asyncDispose]()
    await this.engine[Symbol.asyncDispose]()
    await this.#stack.disposeAsync()
  }

  async #start(): Promise<void> {
    const { clock, containers } = this
    this.engine = await openSqliteEngine({
      directory: this.#directory,
      clock: { now: () => clock.now() + this.aheadMs, after: clock.after },
    })
    const log = pino({ level: 'silent' })
    const { engine } = this
    const { retainMs } = this
    this.queues = new Queues({ engine, clock, source: containers.source, log, retainMs })
    await this.queues.recover()
  }
}

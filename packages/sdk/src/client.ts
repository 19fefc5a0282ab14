import type { AuditEntry, Health, TemplateView, UsageReport } from '@sandlot/protocol'
import { type AuditOptions, audit } from './audit.ts'
import { type Endpoint, givenApiKey, givenUrl } from './config.ts'
import { Address } from './connection/address.ts'
import { Connection } from './connection/connection.ts'
import type { ClientContext, Waiting } from './connection/context.ts'
import { type Located, locate } from './connection/endpoint.ts'
import { clientClosed } from './connection/failure.ts'
import { Http } from './connection/http.ts'
import { type Notice, Notices } from './connection/notices.ts'
import { refuseUnknown } from './connection/unknown-option.ts'
import { FunctionCall } from './function/function-call.ts'
import type {
  FunctionNames,
  FunctionOptions,
  HandlerOf,
  InputOf,
  OutputOf,
} from './function/options.ts'
import { RemoteFunction } from './function/remote-function.ts'
import { Images } from './image/images.ts'
import { Keys } from './keys.ts'
import { joinOrStart, type LocalOptions } from './local/local.ts'
import type { QueueOptions } from './queue/options.ts'
import { Queues } from './queue/queues.ts'
import { TaskQueue } from './queue/task-queue.ts'
import { Rollouts } from './rollout/rollouts.ts'
import { Sandboxes } from './sandbox/sandboxes.ts'
import { Secrets } from './secrets.ts'
import { Snapshots } from './snapshot/snapshots.ts'
import { type PrepareOptions, prepare } from './template/prepare.ts'
import { Templates } from './template/templates.ts'
import { type UsageOptions, usage } from './usage.ts'

export interface SandlotOptions {
  /** Address of the daemon. Default: `SANDLOT_URL`, else the daemon that runs on this machine. */
  readonly url?: string
  /** Default: `SANDLOT_API_KEY`, else the key of this machine's daemon. */
  readonly apiKey?: string
  /**
   * Gets what is no result and no error of a call: that the daemon is away, is back, or drains. Default: a warning of the process,
   * which Node.js prints on its standard error.
   */
  readonly onNotice?: (notice: Notice) => void
}

export interface BackupOptions {
  /** With images and saved memory, which are large and can mostly be made again. Default: without. */
  readonly images?: boolean
  readonly signal?: AbortSignal
}

/**
 * A client of one daemon. It opens its connection when first used, finds it again when it breaks, and doesn't keep the process alive
 * while nothing is under way. `await using client = new Sandlot()` closes it.
 * Errors are `SandlotError`s: decide by `fault` and `retry`, show `message` and `hint`.
 */
export class Sandlot implements AsyncDisposable {
  readonly sandboxes: Sandboxes
  readonly images: Images
  readonly snapshots: Snapshots
  readonly secrets: Secrets
  readonly templates: Templates
  readonly rollouts: Rollouts
  readonly queues: Queues
  readonly keys: Keys
  readonly #context: ClientContext
  readonly #address: Address
  readonly #connection: Connection
  readonly #http: Http
  readonly #closing = new AbortController()
  #find: () => Promise<Located>
  #stop: (() => Promise<void>) | undefined

  constructor(options: SandlotOptions = {}) {
    const given = {
      url: options.url ?? givenUrl(),
      apiKey: options.apiKey ?? givenApiKey(),
    }
    this.#find = () => locate(given)
    const notices = new Notices(options.onNotice)
    this.#address = new Address(() => this.#find(), notices)
    this.#connection = new Connection(this.#address)
    this.#http = new Http(this.#address)
    const context: ClientContext = { connection: this.#connection, http: this.#http, notices }
    this.#context = context
    this.sandboxes = new Sandboxes(context)
    this.images = new Images(context)
    this.snapshots = new Snapshots(context)
    this.secrets = new Secrets(context)
    this.templates = new Templates(context)
    this.queues = new Queues(context)
    this.keys = new Keys(context)
    this.rollouts = new Rollouts(context, this.#closing.signal)
  }

  /**
   * A client of the daemon that runs on this machine; starts one for this process alone when there is none, so that a script
   * needs no second terminal. Closing the last client of a daemon that was started so drains it. The environment's
   * `SANDLOT_URL` has no say here.
   */
  static async local(
    options: LocalOptions & Pick<SandlotOptions, 'onNotice'> = {},
  ): Promise<Sandlot> {
    const { find, stop } = await joinOrStart(options)
    const { onNotice } = options
    const client = new Sandlot(onNotice ? { onNotice } : {})
    client.#find = find
    client.#stop = stop
    return client
  }

  /**
   * Prepares an environment, or finds the one of the same content at once. The template goes straight into `from`, of any number of
   * sandboxes. Throws `image_build_failed` with the last lines of what failed.
   */
  async prepare(options: PrepareOptions): Promise<TemplateView> {
    return await prepare(this.#context, options)
  }

  /**
   * What sandboxes were given, used and cost: from the moment they were ready to their end, by run, day or project. The
   * key of the daemon's machine is told of all projects, and of what waited in the pool.
   */
  async usage(options: UsageOptions = {}): Promise<UsageReport> {
    return await usage(this.#context, options)
  }

  /**
   * Everything durable of the daemon as one tar, made while it serves; `sandlot restore-backup` makes a data directory of it. Only the key of
   * the daemon's machine may have one. Write it to a disk of another machine, and keep it as you keep that key.
   */
  async *backup(options: BackupOptions = {}): AsyncGenerator<Uint8Array> {
    refuseUnknown(options, ['images', 'signal'])
    const { images = false, signal } = options
    yield* this.#http.bytes('backUp', { query: { images: String(images) }, signal })
  }

  /** Who changed what, who connected, and who was refused, oldest first. Needs a key of scope `admin`. */
  audit(options: AuditOptions = {}): AsyncGenerator<AuditEntry> {
    return audit(this.#context, options)
  }

  /**
   * A function of a module of its own, to be run in containers:
   * `client.fn<typeof import('./reward.ts')>(new URL('./reward.ts', import.meta.url), { export: 'score' })`. Its types are those of the
   * module's function; of a module with several name it twice: `fn<typeof import('./reward.ts'), 'score'>`. Nothing is done before it
   * is called.
   */
  fn<Module, Name extends string = FunctionNames<Module>>(
    module: URL | string,
    options: FunctionOptions<Name> = {},
  ): RemoteFunction<InputOf<HandlerOf<Module, Name>>, OutputOf<HandlerOf<Module, Name>>> {
    return new RemoteFunction(this.#context, module, options, this.#closing.signal)
  }

  /** A call that `spawn` began, by its id. */
  call<Output = unknown>(id: string): FunctionCall<Output> {
    return new FunctionCall(this.#context, id)
  }

  /**
   * Tasks that wait on disk for containers of a function. Without a function this process only puts tasks and reads results: the queue
   * keeps the function that it has.
   */
  queue<Input = unknown, Output = unknown>(
    name: string,
    worker?: RemoteFunction<Input, Output>,
    options: QueueOptions = {},
  ): TaskQueue<Input, Output> {
    return new TaskQueue(this.#context, name, worker, options)
  }

  /** Where the daemon answers, and the key in use. */
  async endpoint(): Promise<Endpoint> {
    return await this.#address.endpoint()
  }

  /** Whether the daemon serves; one that drains answers too. Needs no key. */
  async health({ signal }: Waiting = {}): Promise<Health> {
    return await this.#http.json<Health>('health', { signal })
  }

  /** Ends the client's workers, requests and connection. Sandboxes and runs live on in the daemon. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort(clientClosed())
    this.#http.close()
    this.#connection.close()
    const stop = this.#stop
    this.#stop = undefined
    await stop?.()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorEnvelope, type SandboxView, sandboxView } from '@sandlot/protocol'
import { FakeDriver, type FakeDriverOptions } from '@sandlot/runtime'
import type { DaemonInput } from '../config.ts'
import { type Daemon, startDaemon } from '../daemon.ts'
import { smallTar } from './tar.ts'

export interface TestDirectories extends AsyncDisposable {
  readonly dataDirectory: string
  readonly runDirectory: string
}

export async function testDirectories(): Promise<TestDirectories> {
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-server-'))
  return {
    dataDirectory: join(directory, 'data'),
    runDirectory: join(directory, 'run'),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON. */
  readonly json: never
  /** Code of an error answer; its envelope is checked. */
  readonly code: string | undefined
}

export interface Ask {
  readonly json?: unknown
  readonly body?: RequestInit['body']
  readonly headers?: Record<string, string>
  /** Default: the local key; null sends none. */
  readonly key?: string | null
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal
}

/** A real daemon over HTTP, on a driver in memory. */
export class TestDaemon implements AsyncDisposable {
  readonly daemon: Daemon
  readonly driver: FakeDriver
  readonly directories: TestDirectories
  readonly #own: boolean
  #image: Promise<string> | undefined

  constructor(daemon: Daemon, driver: FakeDriver, directories: TestDirectories, own: boolean) {
    this.daemon = daemon
    this.driver = driver
    this.directories = directories
    this.#own = own
  }

  get url(): string {
    return this.daemon.url
  }

  /** Any request, without looking at its answer. */
  fetch(method: string, path: string, ask: Ask = {}): Promise<Response> {
    const key = ask.key === undefined ? this.daemon.apiKey : ask.key
    return fetch(this.url + path, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(ask.json === undefined ? {} : { 'content-type': 'application/json' }),
        ...(ask.idempotencyKey ? { 'idempotency-key': ask.idempotencyKey } : {}),
        ...ask.headers,
      },
      ...(ask.json === undefined ? {} : { body: JSON.stringify(ask.json) }),
      ...(ask.body === undefined ? {} : { body: ask.body, duplex: 'half' }),
      ...(ask.signal ? { signal: ask.signal } : {}),
    } as RequestInit)
  }

  async ask(method: string, path: string, ask: Ask = {}): Promise<Reply> {
    const response = await this.fetch(method, path, ask)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    const json = isJson && text !== '' ? JSON.parse(text) : undefined
    const failed = response.status >= 400 && method !== 'HEAD'
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: json as never,
      code: failed ? errorEnvelope.parse(json).error.code : undefined,
    }
  }

  /** An image that is there. */
  image(): Promise<string> {
    this.#image ??= this.#build()
    return this.#image
  }

  async sandbox(body: Record<string, unknown> = {}): Promise<SandboxView> {
    const reply = await this.ask('POST', '/v1/sandboxes', {
      json: { from: await this.image(), ...body },
    })
    if (reply.status !== 201) throw new Error(`no sandbox: ${reply.text}`)
    return sandboxView.parse(reply.json)
  }

  async exec(sandbox: string, command: unknown, more: Record<string, unknown> = {}) {
    return await this.ask('POST', `/v1/sandboxes/${sandbox}/exec`, { json: { command, ...more } })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.daemon.close()
    if (this.#own) await this.directories[Symbol.asyncDispose]()
  }

  async #build(): Promise<string> {
    const tar = smallTar('etc/motd', 'hello\n')
    const digest = `sha256:${createHash('sha256').update(tar).digest('hex')}`
    await this.ask('PUT', `/v1/blobs/${digest}`, { body: tar })
    const built = await this.ask('POST', '/v1/images', { json: { kind: 'tar', blob: digest } })
    const last = JSON.parse(built.text.trim().split('\n').at(-1) ?? '{}')
    if (last.kind !== 'done') throw new Error(`no image: ${built.text}`)
    return last.image.id
  }
}

/** Starts a daemon with directories of its own, or with those given. */
export async function startTestDaemon(
  options: FakeDriverOptions & {
    readonly daemon?: DaemonInput
    readonly directories?: TestDirectories
    readonly driver?: FakeDriver
  } = {},
): Promise<TestDaemon> {
  const { daemon, directories: given, driver: givenDriver, ...driverOptions } = options
  // Of one that does not start nothing stays.
  await using made = new AsyncDisposableStack()
  const directories = given ?? made.use(await testDirectories())
  const driver = givenDriver ?? new FakeDriver(driverOptions)
  const { dataDirectory, runDirectory } = directories
  const started = await startDaemon({
    port: 0,
    dataDirectory,
    runDirectory,
    driver,
    poolTarget: 2,
    logLevel: 'silent',
    ...daemon,
  })
  made.move()
  return new TestDaemon(started, driver, directories, given === undefined)
}

/** A real daemon in this process on sandboxes in memory, and clients of it over real HTTP and WebSocket. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FakeDriver, type FakeScript } from '@sandlot/runtime'
import { type Daemon, type DaemonInput, startDaemon } from '@sandlot/server'
import { ownPort } from '@sandlot/testkit'
import { Image, type ImageView, Sandlot } from 'sandlot'

export interface FakeDaemon extends AsyncDisposable {
  readonly driver: FakeDriver
  readonly directory: string
  readonly runDirectory: string
  readonly url: string
  readonly apiKey: string
  /** A new client; closed with the daemon. */
  client(): Sandlot
  /** An image that is there. */
  image(): Promise<ImageView>
  /**
   * Ends it, with `meanwhile` while there is none, and starts another one on the same directories, sandboxes and, unless another
   * is given, port.
   */
  restart(meanwhile?: () => Promise<void>, options?: { readonly port?: number }): Promise<void>
}

export interface FakeDaemonOptions {
  /** What commands do. */
  readonly script?: FakeScript
  readonly daemon?: DaemonInput
}

export async function startFakeDaemon(options: FakeDaemonOptions = {}): Promise<FakeDaemon> {
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-sdk-'))
  const driver = new FakeDriver(options.script ? { script: options.script } : {})
  const runDirectory = join(directory, 'run')
  const clients: Sandlot[] = []
  const start = (port: number) =>
    startDaemon({
      port,
      dataDirectory: join(directory, 'data'),
      runDirectory,
      driver,
      poolTarget: 2,
      memoryBytes: 2 ** 40,
      cpus: 10_000,
      logLevel: 'silent',
      ...options.daemon,
    })
  let daemon: Daemon = await start(await ownPort())
  let image: Promise<ImageView> | undefined
  const client = () => {
    const made = new Sandlot({ url: daemon.url, apiKey: daemon.apiKey })
    clients.push(made)
    return made
  }
  return {
    driver,
    directory,
    runDirectory,
    get url() {
      return daemon.url
    },
    get apiKey() {
      return daemon.apiKey
    },
    client,
    image() {
      image ??= buildImage(client(), directory)
      return image
    },
    async restart(meanwhile, { port = Number(new URL(daemon.url).port) } = {}) {
      await daemon.close({ sandboxes: 'keep' })
      await meanwhile?.()
      daemon = await start(port)
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map((each) => each.close()))
      await daemon.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function buildImage(client: Sandlot, directory: string): Promise<ImageView> {
  const path = join(directory, 'root.tar')
  await writeFile(path, smallTar())
  return await client.images.build(Image.tar(path))
}

/** A tar with one empty file. */
function smallTar(): Uint8Array {
  const header = Buffer.alloc(512)
  header.write('etc/empty', 0)
  header.write('0000644\0' + '0000000\0' + '0000000\0', 100)
  header.write('00000000000\0' + '00000000000\0', 124)
  header.write('        0', 148)
  header.write('ustar\0' + '00', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return Buffer.concat([header, Buffer.alloc(1024)])
}

/** Resolves when the condition holds; fails when it doesn't for long. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 60_000
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`still not: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

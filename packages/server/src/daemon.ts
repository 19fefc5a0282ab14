/**
 * The daemon: engine, node, coordinator and API in one process. It is crash-only: a start is a recovery, and whatever a kill leaves
 * is brought in line by the next start.
 *
 * ```
 * take the data directory ─▶ listen (answers `draining`) ─▶ recover node ─▶ recover runs ─▶ announce, serve, fill the pool
 * close: refuse new work ─▶ what runs goes on until the deadline ─▶ stop ─▶ give the data directory free
 * ```
 */
import { join } from 'node:path'
import { type Engine, systemClock } from '@sandlot/engine'
import { type InnerServer, openImageStore } from '@sandlot/runtime'
import type { Logger } from 'pino'
import {
  announce,
  checkRunDirectory,
  localKey,
  makeDirectory,
  RUN_DIRECTORY_MODE,
} from './announcement.ts'
import { Audit } from './audit/audit.ts'
import { removeUnfinished } from './backup/unpacking-place.ts'
import { collectUnused } from './blobs/collect-unused.ts'
import { checkRecords } from './check-records.ts'
import { type DaemonInput, type DaemonOptions, daemonOptions } from './config.ts'
import { Coordinator } from './coordinator/coordinator.ts'
import { openDriver } from './driver.ts'
import { fromRuntime } from './failure.ts'
import { functionHost } from './function-host.ts'
import { Queues } from './functions/queues.ts'
import { sandboxContainers } from './functions/sandbox-container.ts'
import { halfOfDisk } from './half-of-disk.ts'
import { innerApi } from './http/inner-api.ts'
import { Signer } from './http/signed.ts'
import { hasImageBlob, openImageBlob } from './images/image-blobs.ts'
import { stepMachines } from './images/step-machines.ts'
import { openLog } from './log.ts'
import { Metrics } from './metrics/metrics.ts'
import { timedEngine } from './metrics/timed-engine.ts'
import { Checkpoints } from './node/checkpoints.ts'
import { DiskWatch } from './node/disk-watch.ts'
import { Node } from './node/node.ts'
import { nodeSettings } from './node/settings.ts'
import { openApi } from './open-api.ts'
import { openEngine } from './open-engine.ts'
import { openSaved } from './open-saved.ts'
import { keepRetention } from './retention.ts'
import { Seal } from './secrets/seal.ts'
import { Secrets } from './secrets/secrets.ts'
import { Serving } from './serving.ts'
import { Shutdown } from './shutdown.ts'
import { forgetKept } from './snapshots/keeper.ts'
import { watchStalls } from './stall-watch.ts'

export interface Daemon {
  readonly url: string
  /** The local key, of scope `admin`. */
  readonly apiKey: string
  readonly options: DaemonOptions
  /**
   * Stops. New work is refused at once; attempts and commands that run have `drainMs` (default 0) to end. A second call ends the
   * wait. Sandboxes are stopped, unless they are to be found by the next daemon.
   */
  close(options?: CloseOptions): Promise<void>
}

export interface CloseOptions {
  readonly drainMs?: number
  /** Default `stop`. `keep`: the next daemon adopts them; this process should end then, it still holds their pipes. */
  readonly sandboxes?: 'stop' | 'keep'
}

/**
 * Starts a daemon and resolves when it serves. Fails with a `SandlotError` that has a hint where the port or the data directory is
 * another's, or a directory can't be written; then nothing is left running.
 */
export async function startDaemon(input: DaemonInput = {}): Promise<Daemon> {
  try {
    return await started(input)
  } catch (error) {
    throw fromRuntime(error)
  }
}

async function started(input: DaemonInput): Promise<Daemon> {
  const options = daemonOptions(input)
  const { runDirectory, dataDirectory } = options
  await using starting = new AsyncDisposableStack()
  const log = openLog(options)
  await makeDirectory(dataDirectory, 0o700)
  await makeDirectory(runDirectory, RUN_DIRECTORY_MODE)

  const metrics = new Metrics()
  const opened = starting.use(await openEngine(options))
  for (const path of await removeUnfinished(dataDirectory)) {
    log.warn({ path }, 'removed what a restore left that was killed')
  }
  await checkRunDirectory(runDirectory)
  const engine = timedEngine(opened, (primitive, ms) => metrics.committed(primitive, ms))
  await checkRecords(engine, log)
  const apiKey = await localKey(dataDirectory)
  const signer = await Signer.open(dataDirectory, systemClock.now)
  const audit = starting.use(new Audit({ log: engine.log, clock: systemClock, logger: log }))
  const parts = await openParts({ options, log, metrics, engine, signer, starting })
  const daemonUrl = () => parts.endpoint.url
  const api = await openApi({
    ...parts,
    options,
    log,
    metrics,
    engine,
    apiKey,
    signer,
    audit,
    daemonUrl,
  })
  const { listening, sockets } = api
  parts.endpoint.url = listening.url
  parts.inside.server = innerApi(listening.server)
  const { node, coordinator, queues, serving } = parts
  const { server, url } = listening
  const closeSockets = () => sockets.close()
  const shutdown = new Shutdown({ serving, coordinator, queues, node, server, log, closeSockets })
  starting.defer(() => shutdown.run({ drainMs: 0, sandboxes: 'keep' }))

  const recovered = await node.recover()
  await coordinator.recover()
  await queues.recover()
  const watch = watchStalls((forMs) => {
    log.warn({ forMs: Math.round(forMs) }, 'this process stood still; no agent is charged for it')
    coordinator.stoodStill(forMs)
  })
  starting.use(watch)
  await parts.snapshots.reap()
  starting.use(collectUnused(engine, parts, { clock: systemClock, log }))
  starting.use(forgetKept(parts, { clock: systemClock, log }))
  const retainMs = options.retainMs || undefined
  starting.use(keepRetention({ coordinator, clock: systemClock, log, retainMs }))
  serving.serve()
  node.pool.fill()
  const said = { url, pid: process.pid, dataDirectory }
  const announced = await announce(runDirectory, said, (error) =>
    log.warn({ err: error }, 'nobody on this machine finds the daemon; trying again'),
  )
  log.info({ ...recovered, driver: parts.driver, dataDirectory }, `serving at ${url}`)

  const running = starting.move()
  let closed: Promise<void> | undefined
  const close = async ({ drainMs = 0, sandboxes = 'stop' }: CloseOptions) => {
    // Whoever looks for a daemon that drains finds it, and is told.
    await shutdown.run({ drainMs, sandboxes })
    await announced[Symbol.asyncDispose]()
    parts.left.alive = sandboxes === 'keep'
    await running.disposeAsync()
  }
  return {
    url,
    apiKey,
    options,
    close: (how = {}) => {
      if (closed) shutdown.hurry()
      closed ??= close(how)
      return closed
    },
  }
}

interface Given {
  readonly options: DaemonOptions
  readonly log: Logger
  readonly metrics: Metrics
  readonly engine: Engine
  readonly signer: Signer
}

/** What does the work. What must be closed is put on `starting`. */
async function openParts(given: Given & { readonly starting: AsyncDisposableStack }) {
  const { options, log, metrics, engine, starting } = given
  const opened: { node?: Node; coordinator?: Coordinator } = {}
  const images = starting.use(
    await openImageStore({
      directory: join(options.dataDirectory, 'images'),
      openBlob: openImageBlob(engine),
      hasBlob: hasImageBlob(engine),
      openMachine: stepMachines({ node: () => opened.node, memoryBytes: options.memoryBytes }),
      sizeBytesMax: options.imageBytes || (await halfOfDisk(options.dataDirectory)),
    }),
  )
  const checkpoints = new Checkpoints(join(options.dataDirectory, 'checkpoints'))
  const saved = await openSaved({ engine, images, log, checkpoints, opened })
  const { driver, own } = openDriver(options)
  // A start that fails leaves what it found to the next one.
  const left = { alive: true }
  if (own) {
    starting.defer(async () => {
      if (!left.alive) await driver[Symbol.asyncDispose]()
    })
  }
  const seal = await Seal.open(options.dataDirectory)
  const secrets = new Secrets(engine, seal, systemClock.now)
  for (const secret of await secrets.unopened()) {
    log.error(
      secret,
      'a secret was sealed with another secrets.key: bring that back, or set it again',
    )
  }
  const endpoint = { url: '' }
  const inside: { server?: InnerServer } = {}
  const node = await Node.open({
    ...nodeSettings(options),
    endpoint: () => endpoint.url,
    engine,
    driver,
    images,
    clock: systemClock,
    log,
    checkpoints,
    secrets,
    prices: options.prices,
    usageRetainMs: options.usageRetainMs,
    numbers: metrics,
    inside: () => inside.server,
    onReleased: ({ source }) => {
      if (source.kind === 'id') saved.snapshots.reapSoon()
    },
  })
  opened.node = node
  const onStored = (project: string, blob: string) => saved.holdings.add('blob', project, blob)
  const disk = starting.use(
    DiskWatch.open({
      ...{ directory: options.dataDirectory, freeBytesMin: options.diskFreeBytes },
      ...{ clock: systemClock, log },
    }),
  )
  disk.govern(node.room)
  const source =
    options.containers?.(engine) ?? sandboxContainers({ node, images, engine, onStored })
  const coordinator = new Coordinator({
    functions: functionHost(source, given.signer, systemClock),
    ...{ engine, node, currency: options.prices?.currency ?? null },
    clock: systemClock,
    keeper: saved.keeper,
    onStored,
    imageDigest: async (image) => (await images.find(image))?.digest,
    warn: (message, error) => log.warn({ err: error }, message),
  })
  opened.coordinator = coordinator
  return {
    ...{ images, checkpoints, disk, secrets },
    ...saved,
    node,
    coordinator,
    queues: new Queues({
      ...{ engine, clock: systemClock, source, log },
      retainMs: options.retainMs || undefined,
    }),
    endpoint,
    inside,
    left,
    driver: driver.name,
    serving: new Serving(),
  }
}

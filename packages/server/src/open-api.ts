import type { Server as TlsServer } from 'node:https'
import { type Engine, systemClock } from '@sandlot/engine'
import type { ImageStore } from '@sandlot/runtime'
import type { Logger } from 'pino'
import { auditAnswered, auditConnection } from './audit/answered.ts'
import type { Audit } from './audit/audit.ts'
import { auditHandlers } from './audit/handlers.ts'
import { backupHandlers } from './backup/handlers.ts'
import { blobHandlers } from './blobs/handlers.ts'
import type { DaemonOptions } from './config.ts'
import { type Session, serveSocket } from './connect/session.ts'
import { type Sockets, serveUpgrades } from './connect/upgrade.ts'
import type { Coordinator } from './coordinator/coordinator.ts'
import { queueHandlers } from './functions/handlers.ts'
import type { Queues } from './functions/queues.ts'
import { healthHandler } from './health.ts'
import type { Holdings } from './holdings/holdings.ts'
import type { OwnImages } from './holdings/own-images.ts'
import { isLoopback } from './http/access.ts'
import type { Handlers } from './http/call.ts'
import { readCertificate, watchCertificate } from './http/certificate.ts'
import { Idempotency } from './http/idempotency.ts'
import { keyHandlers } from './http/key-handlers.ts'
import { KeyRing } from './http/keys.ts'
import { type Listening, listen } from './http/listen.ts'
import { mountRoutes } from './http/mount.ts'
import { RateLimits } from './http/rate-limits.ts'
import { type Answered, logRequest } from './http/request-log.ts'
import { Rights } from './http/rights.ts'
import type { Signer } from './http/signed.ts'
import { ClientFunctions, functionHandlers } from './images/client-functions.ts'
import { imageHandlers } from './images/handlers.ts'
import { SERVER_LIMITS } from './limits.ts'
import { watch } from './metrics/gauges.ts'
import { type Metrics, metricsHandler } from './metrics/metrics.ts'
import type { Checkpoints } from './node/checkpoints.ts'
import type { DiskWatch } from './node/disk-watch.ts'
import type { Node } from './node/node.ts'
import { type OpenedPorts, openPorts } from './ports/open-ports.ts'
import { runHandlers } from './runs/handlers.ts'
import { execHandlers } from './sandboxes/execs.ts'
import { callerByFileUrl, fileUrlHandlers } from './sandboxes/file-urls.ts'
import { fileHandlers } from './sandboxes/files.ts'
import { lifeHandlers } from './sandboxes/life.ts'
import { memoryHandlers } from './sandboxes/memory.ts'
import { networkHandlers } from './sandboxes/network.ts'
import { secretHandlers } from './secrets/handlers.ts'
import type { Secrets } from './secrets/secrets.ts'
import type { Serving } from './serving.ts'
import { forkFilesystem } from './snapshots/fork.ts'
import { snapshotHandlers } from './snapshots/handlers.ts'
import type { Snapshots } from './snapshots/snapshots.ts'
import type { StartPoints } from './start-points.ts'
import { templateHandlers } from './templates/handlers.ts'
import type { Templates } from './templates/templates.ts'
import { usageHandlers } from './usage/handlers.ts'

/** What the API speaks for. */
export interface ApiParts {
  readonly options: DaemonOptions
  readonly log: Logger
  readonly metrics: Metrics
  readonly engine: Engine
  /** The local key. */
  readonly apiKey: string
  readonly signer: Signer
  readonly audit: Audit
  readonly images: ImageStore
  readonly holdings: Holdings
  readonly ownImages: OwnImages
  readonly templates: Templates
  readonly snapshots: Snapshots
  readonly startPoints: StartPoints
  readonly secrets: Secrets
  readonly node: Node
  readonly coordinator: Coordinator
  readonly queues: Queues
  readonly serving: Serving
  readonly checkpoints: Checkpoints
  /** Once it listens. */
  readonly daemonUrl: () => string
  readonly disk: DiskWatch
}

export interface Api {
  readonly listening: Listening
  readonly sockets: Pick<Sockets, 'close'>
}
/** What the world sees: HTTP and the WebSocket, on one port. It answers `draining` until the daemon serves. */
export async function openApi(given: ApiParts): Promise<Api> {
  const { options, log, metrics, engine, holdings, node, coordinator, queues, serving } = given
  const keys = await KeyRing.open(engine, given.apiKey, systemClock.now)
  if (keys.list().some(({ project }) => project !== 'default')) await holdings.share()
  const rights = rightsBy(keys, given)
  const { requestsPerSecond } = options
  const rates = new RateLimits({ requestsPerSecond, now: () => performance.now() })
  const onAnswered = (answered: Answered) => {
    metrics.answered(answered)
    logRequest(log, answered)
    auditAnswered(given.audit, answered)
  }
  const opened = openPorts({ ...given, keys, rights, rates, onAnswered, now: systemClock.now })
  const { ports, gate } = opened
  const handlers = { ...handlersOf(given, { keys }), ...opened.handlers }
  const idempotency = new Idempotency(engine)
  const app = mountRoutes({
    handlers,
    rights,
    rates,
    idempotency,
    serving,
    disk: given.disk,
    access: options,
    log,
    holdings,
    isOfAttempt: (sandbox) => node.isOfAttempt(sandbox),
    ofToken: (token) => callerByFileUrl(given.signer, rights, token),
    onAnswered,
  })
  const listening = await listenBy(options, { app, gate, log })
  const looking = setInterval(() => rights.endLost(), SERVER_LIMITS.rightsEveryMs)
  looking.unref()
  listening.server.once('close', () => clearInterval(looking))
  const onEnded: Session['onEnded'] = (op, error) => metrics.streamEnded(op, error?.code ?? 'ok')
  const sockets = serveUpgrades({
    server: listening.server,
    rights,
    rates,
    access: options,
    serving,
    onAsked: (asked) => auditConnection(given.audit, asked),
    gate,
    onSocket: (socket, caller) =>
      serveSocket(socket, {
        caller,
        rights,
        rates,
        node,
        ports,
        coordinator,
        serving,
        log,
        onEnded,
      }),
  })
  watch(metrics.registry, {
    ...{ node, coordinator, queues, serving, disk: given.disk },
    sockets: () => sockets.count,
  })
  const close = () => {
    sockets.close()
    ports.close()
  }
  return { listening, sockets: { close } }
}

/** By plain HTTP, or by TLS where there is a certificate. */
async function listenBy(
  { host, port, tls }: DaemonOptions,
  { app, gate, log }: Served,
): Promise<Listening> {
  if (tls === null) {
    if (!isLoopback(host)) log.warn({ host }, PLAIN)
    return await listen(app, { host, port }, gate)
  }
  const certificate = await readCertificate(tls, systemClock.now())
  const listening = await listen(app, { host, port, certificate }, gate)
  const { server } = listening
  const watching = watchCertificate(server as TlsServer, tls, { log, now: systemClock.now })
  server.once('close', () => watching[Symbol.dispose]())
  return listening
}

interface Served {
  readonly app: Parameters<typeof listen>[0]
  readonly gate: Parameters<typeof listen>[2]
  readonly log: Logger
}

const PLAIN =
  'keys and contents travel unencrypted to whoever is between: set SANDLOT_TLS_CERT and SANDLOT_TLS_KEY, or put a proxy with TLS before the daemon'

/** One handler for each route. */
function handlersOf(
  given: ApiParts,
  { keys }: { readonly keys: KeyRing },
): Omit<Handlers, keyof OpenedPorts['handlers']> {
  const { options, metrics, engine, images, holdings, startPoints, node, serving } = given
  const saved = { node, images, snapshots: given.snapshots, now: systemClock.now }
  const keeperOf = (image: string) =>
    given.snapshots.keeperOf(image)?.id ?? given.templates.keeperOf(image)
  const functions = new ClientFunctions()
  const files = fileHandlers(node)
  return {
    ...healthHandler(serving, given.disk, given.node.room),
    ...backupHandlers({
      ...{ engine, images, checkpoints: given.checkpoints, clock: systemClock },
      dataDirectory: options.dataDirectory,
    }),
    ...auditHandlers({ audit: given.audit, log: engine.log, clock: systemClock }),
    ...keyHandlers({ keys, holdings, now: systemClock.now }),
    ...metricsHandler(metrics),
    ...lifeHandlers(node, startPoints, given.secrets, systemClock),
    ...memoryHandlers({
      node,
      clock: systemClock,
      forkFiles: (call, original, copies) => forkFilesystem(saved, call, original, copies),
    }),
    ...networkHandlers(node, systemClock),
    ...secretHandlers(given.secrets),
    ...execHandlers(node, systemClock, (elapsedMs) => metrics.execOverhead(elapsedMs)),
    ...files,
    ...fileUrlHandlers({ signer: given.signer, node, files, now: systemClock.now }),
    ...imageHandlers({ images, functions, startPoints, own: given.ownImages, keeperOf }),
    ...templateHandlers(given.templates, functions),
    ...functionHandlers(functions),
    ...snapshotHandlers(saved),
    ...blobHandlers(engine, holdings),
    ...runHandlers(given.coordinator, startPoints, given.secrets),
    ...usageHandlers(node, systemClock),
    ...queueHandlers(given.queues, startPoints, given.secrets),
  }
}

function rightsBy(keys: KeyRing, { signer, coordinator }: ApiParts): Rights {
  const isLeaseAlive = (lease: string, sandbox: string) => coordinator.isLeaseAlive(lease, sandbox)
  return new Rights({ keys, signer, now: systemClock.now, isLeaseAlive })
}

import type { ErrorCode, SandboxEnding, SandboxOrigin } from '@sandlot/protocol'
import type { Reconciled, RelayNews } from '@sandlot/runtime'
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import type { Handlers } from '../http/call.ts'
import type { Answered } from '../http/request-log.ts'
import type { NodeNumbers } from '../node/numbers.ts'

const SECONDS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300]
const COMMIT_SECONDS = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3]

/**
 * What a person on call wants to see, for one daemon (`GET /metrics`). What is counted as it happens is here; what is looked at when
 * somebody asks is in `gauges.ts`. Process memory, processor time, event-loop lag and garbage collection are the library's own.
 */
export class Metrics implements NodeNumbers {
  readonly registry = new Registry()
  readonly #requests = this.#counter('http_requests_total', 'HTTP requests answered', [
    'route',
    'status',
  ])
  readonly #requestSeconds = this.#histogram('http_request_seconds', 'Time of HTTP requests', [
    'route',
  ])
  readonly #streams = this.#counter('stream_requests_total', 'Requests on WebSockets that ended', [
    'op',
    'code',
  ])
  readonly #created = this.#histogram(
    'sandbox_create_seconds',
    'From the request for a sandbox to its open world, without the wait for room',
    ['origin'],
  )
  readonly #createFailed = this.#counter(
    'sandbox_create_failures_total',
    'Sandboxes that did not come up',
    ['code'],
  )
  readonly #endings = this.#counter('sandbox_endings_total', 'How sandboxes ended', ['kind'])
  readonly #connections = this.#counter(
    'network_connections_total',
    'Connections that processes in sandboxes asked for, and what became of them',
    ['outcome'],
  )
  readonly #reconciled = this.#counter(
    'reconciled_total',
    'What the daemon found on its machine and did not know, or knew and did not find',
    ['what'],
  )
  readonly #execSeconds = this.#histogram(
    'exec_overhead_seconds',
    'Time of buffered commands over HTTP beside the command itself',
    [],
  )
  readonly #commitSeconds = this.#histogram(
    'engine_commit_seconds',
    'Time until a write of the engine is durable',
    ['primitive'],
    COMMIT_SECONDS,
  )

  constructor() {
    collectDefaultMetrics({ register: this.registry })
  }

  answered({ route, status, elapsedMs }: Answered): void {
    this.#requests.inc({ route, status: String(status) })
    this.#requestSeconds.observe({ route }, elapsedMs / 1_000)
  }

  streamEnded(op: string, code: ErrorCode | 'ok'): void {
    this.#streams.inc({ op, code })
  }

  created(origin: SandboxOrigin, elapsedMs: number): void {
    this.#created.observe({ origin }, elapsedMs / 1_000)
  }

  failed(code: ErrorCode): void {
    this.#createFailed.inc({ code })
  }

  ended(kind: SandboxEnding): void {
    this.#endings.inc({ kind })
  }

  connected(outcome: RelayNews['outcome']): void {
    this.#connections.inc({ outcome })
  }

  reconciled(what: keyof Reconciled, count: number): void {
    this.#reconciled.inc({ what }, count)
  }

  execOverhead(elapsedMs: number): void {
    this.#execSeconds.observe(elapsedMs / 1_000)
  }

  committed(primitive: 'log' | 'kv', elapsedMs: number): void {
    this.#commitSeconds.observe({ primitive }, elapsedMs / 1_000)
  }

  #counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name: `sandlot_${name}`, help, labelNames, registers: [this.registry] })
  }

  #histogram(name: string, help: string, labelNames: string[], buckets = SECONDS): Histogram {
    const registers = [this.registry]
    return new Histogram({ name: `sandlot_${name}`, help, labelNames, buckets, registers })
  }
}

/** `GET /metrics`. */
export function metricsHandler({ registry }: Metrics): Pick<Handlers, 'metrics'> {
  return {
    metrics: async () => ({ text: await registry.metrics(), contentType: registry.contentType }),
  }
}

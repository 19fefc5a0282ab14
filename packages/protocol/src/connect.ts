/**
 * Requests on the client's WebSocket (`GET /v1/connect`, frames of docs/wire.md). Each is the payload of an `open` frame.
 *
 * exec.start   channels 0 stdin, 1 stdout, 2 stderr; events `started`, and `stdin` when all of stdin was handed over; result `execEnd`
 *              with `terminal`: what is typed is data on channel 0, whose end means nothing; all output is on channel 1
 * exec.attach  the same for a command that runs or ran, from given offsets; event `offset` before the first data of a channel
 * file.read    data on channel 1; result `{ sizeBytes }`
 * file.write   data on channel 0; result `{ sizeBytes }`
 * file.list    data on channel 1: MessagePack maps `{ name: bytes, kind, sizeBytes, mode, mtimeMs }` one after another; result `{ count }`
 * tar.out      a pax tar on channel 1; result `{ entries }`
 * tar.in       a tar on channel 0; result `{ entries }`
 * port.open    a connection to a port: channel 0 towards the sandbox, 1 from it; event `connected`; result `{}` when both have ended
 * port.wait    until something listens on a port; result `{}`
 * worker       leases: see `workerEventFromServer` and `workerEventFromClient`; result `{}` when the run is over
 */
import { z } from 'zod'
import { artifact } from './artifact.ts'
import { execOptions, terminal } from './exec.ts'
import { userName } from './kernel-text.ts'
import { LIMITS } from './limits.ts'
import { FLAGS } from './outcomes.ts'
import { portNumber, portWaitMs } from './port.ts'

const sandbox = z.string()
const world = z.enum(['main', 'grade']).optional()
/** Raw bytes, or text. */
const path = z.union([z.custom<Uint8Array>((value) => value instanceof Uint8Array), z.string()])

export const connectRequest = z.discriminatedUnion('op', [
  execOptions.extend({
    op: z.literal('exec.start'),
    sandbox,
    world,
    /** With a terminal: the shell of the sandbox where it is left out. */
    command: execOptions.shape.command.optional(),
    stdin: z.boolean(),
    mode: z.enum(['stream', 'buffered']),
    /** It runs at a terminal, whose input is channel 0 and whose output channel 1; `stdin` is true and `mode` `stream` then. */
    terminal: terminal.optional(),
    /** `ex_…`: chosen by the client, so that a start can be found again after a lost connection. */
    exec: z.string(),
  }),
  z.object({
    op: z.literal('exec.attach'),
    sandbox,
    exec: z.string(),
    stdoutFrom: z.number().int().nonnegative(),
    stderrFrom: z.number().int().nonnegative(),
    /** It runs at a terminal: a daemon that drains doesn't wait for its reader. */
    terminal: z.boolean().optional(),
  }),
  z.object({
    op: z.literal('file.read'),
    sandbox,
    world,
    path,
    offset: z.number().optional(),
    length: z.number().optional(),
  }),
  z.object({
    op: z.literal('file.write'),
    sandbox,
    world,
    path,
    mode: z.number().int().optional(),
    parents: z.boolean(),
    append: z.boolean(),
    exclusive: z.boolean(),
    user: userName.optional(),
  }),
  z.object({ op: z.literal('file.list'), sandbox, world, path }),
  z.object({ op: z.literal('tar.out'), sandbox, world, path }),
  z.object({ op: z.literal('tar.in'), sandbox, world, path }),
  z.object({ op: z.literal('port.open'), sandbox, port: portNumber }),
  z.object({
    op: z.literal('port.wait'),
    sandbox,
    port: portNumber,
    /** `timeout` when nothing listens by then. Default: a minute. */
    timeout: portWaitMs,
  }),
  z.object({
    op: z.literal('worker'),
    run: z.string(),
    /** `wk_…`: a worker that reconnects keeps its leases. */
    worker: z.string(),
    /** How many leases it holds at most. */
    slots: z.number().int().min(1).max(LIMITS.concurrency),
    /** Leases it still holds from before a lost connection. */
    held: z.array(z.object({ lease: z.string(), token: z.number() })),
  }),
])
export type ConnectRequest = z.infer<typeof connectRequest>
/** As a client may write it: durations as text. */
export type ConnectRequestInput = z.input<typeof connectRequest>
export type ConnectOp = ConnectRequest['op']
export const CONNECT_OPS: readonly ConnectOp[] = connectRequest.options.map(
  ({ shape }) => shape.op.value,
)

/** A worker's right to one phase of an attempt, until its deadline or a missed heartbeat. */
export const lease = z.object({
  lease: z.string(),
  /** Fencing token: a report with an older one is refused. */
  token: z.number(),
  phase: z.enum(['agent', 'grade']),
  episode: z.string(),
  key: z.string(),
  group: z.string(),
  member: z.number(),
  index: z.number(),
  attempt: z.number(),
  seed: z.number(),
  policyVersion: z.number(),
  sandbox: z.string(),
  world: z.enum(['main', 'grade']),
  /** The task as JSON text, or its blob. */
  taskJson: z.string().nullable(),
  taskBlob: z.string().nullable(),
  /** Grade phase: what the episode returned as data, as JSON text or blob. */
  dataJson: z.string().nullable(),
  dataBlob: z.string().nullable(),
  /** Time left of the phase. Milliseconds. */
  timeoutMs: z.number(),
  modelTimeoutMs: z.number(),
})
export type Lease = z.infer<typeof lease>

export const workerEventFromServer = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('lease'), lease }),
  /** The report is durable, or refused because another is. */
  z.object({
    kind: z.literal('settled'),
    lease: z.string(),
    accepted: z.boolean(),
    reason: z.string().optional(),
  }),
  /** Stop working on it: deadline, cancellation, lost sandbox. */
  z.object({ kind: z.literal('revoked'), lease: z.string(), cause: z.string() }),
  /** The daemon admits nothing more and will stop; leases that are held go on, and end with it at the latest. */
  z.object({ kind: z.literal('draining') }),
])
export type WorkerEventFromServer = z.infer<typeof workerEventFromServer>

/** What a worker found. Numbers are checked here once more: only finite ones are a reward. */
export const workerReport = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('returned'),
    reward: z.number().optional(),
    rewards: z.record(z.string(), z.number()).optional(),
    dataJson: z.string().optional(),
    dataBlob: z.string().optional(),
    limit: z.string().max(LIMITS.nameLength).optional(),
  }),
  z.object({
    kind: z.literal('threw'),
    cause: z.array(z.string().max(LIMITS.causeLength)).max(16),
  }),
  z.object({
    kind: z.literal('model_failed'),
    cause: z.array(z.string().max(LIMITS.causeLength)).max(16),
  }),
  /** The function returned something that is no result: NaN, text, a reward beside a grader. */
  z.object({
    kind: z.literal('invalid'),
    cause: z.array(z.string().max(LIMITS.causeLength)).max(16),
  }),
  /** The worker's code saw the deadline or the revocation and stopped. */
  z.object({ kind: z.literal('aborted') }),
])
export type WorkerReport = z.infer<typeof workerReport>

/** Of a grade: it was the platform that kept the grader from a verdict. Left out: the grader's own, or nobody knows. */
export const gradeFault = z.literal('platform').optional()

const held = z.object({ lease: z.string(), token: z.number() })

export const workerEventFromClient = z.discriminatedUnion('kind', [
  /** Heartbeat for all leases held, at least each 15 s. `lagMs`: how late the worker's event loop ran since the last one. */
  z.object({ kind: z.literal('renew'), leases: z.array(held), lagMs: z.number().nonnegative() }),
  /** The lease has arrived, and its function begins: the clock of the phase starts. One that was not taken is given again. */
  held.extend({ kind: z.literal('taken') }),
  held.extend({ kind: z.literal('model_started') }),
  held.extend({ kind: z.literal('model_ended') }),
  held.extend({
    kind: z.literal('report'),
    report: workerReport,
    fault: gradeFault,
    /** Time of the phase without model calls and lag, as the worker measured it. */
    agentMs: z.number().nonnegative(),
    modelMs: z.number().nonnegative(),
    lagMs: z.number().nonnegative(),
    flags: z.array(z.enum(FLAGS)),
    artifacts: z.array(artifact).max(LIMITS.artifacts).optional(),
  }),
])
export type WorkerEventFromClient = z.infer<typeof workerEventFromClient>

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import {
  invalidRequest,
  needsKey,
  ROUTES,
  type Route,
  type RouteName,
  SandlotError,
} from '@sandlot/protocol'
import { type Context, Hono } from 'hono'
import type { Logger } from 'pino'
import type { z } from 'zod'
import { toSandlotError } from '../failure.ts'
import type { Holdings } from '../holdings/holdings.ts'
import { requireNamedBlobs } from '../holdings/named-blobs.ts'
import { SERVER_LIMITS } from '../limits.ts'
import type { DiskWatch } from '../node/disk-watch.ts'
import type { Serving } from '../serving.ts'
import { type AccessRules, checkAccess } from './access.ts'
import { type Answer, asLines, errorAnswer, jsonAnswer, sendAnswer, sendStream } from './answer.ts'
import { readBytes, readJson } from './body.ts'
import type { Bytes, BytesAnswer, Call, Handlers, HeadAnswer, TextAnswer } from './call.ts'
import { goneSignal } from './gone-signal.ts'
import { type Idempotency, type Keyed, RequestDigest } from './idempotency.ts'
import { type Caller, requireScope } from './keys.ts'
import { parseQuery } from './query.ts'
import { type RateLimits, rateNameOf } from './rate-limits.ts'
import type { Answered } from './request-log.ts'
import { letIn, type Rights } from './rights.ts'
import { routeOf, unknownRoute } from './route-of.ts'
import { requireReach } from './sandbox-token.ts'
import { BEGINS_WORK, NEEDS_DISK, OWN_IDEMPOTENCY, scopeOf } from './scopes.ts'

export interface MountOptions {
  readonly handlers: Handlers
  readonly rights: Rights
  readonly rates: RateLimits
  readonly idempotency: Idempotency
  readonly disk: Pick<DiskWatch, 'bound' | 'check'>
  readonly serving: Serving
  readonly access: AccessRules
  readonly log: Logger
  readonly holdings: Holdings
  /** Whether the sandbox that a request is for is that of an attempt. */
  readonly isOfAttempt: (sandbox: string | undefined) => boolean
  /** Whose right a token in an address is, and to what. Throws as `Rights.check` does, and `token_invalid`. */
  readonly ofToken: (token: string) => Entitled
  /** Told of each answered request. */
  readonly onAnswered: (answered: Answered) => void
}

type HttpContext = Context<{ Bindings: HttpBindings }>
/** A call whose route is not known to the compiler: the table of handlers has matched them. */
type AnyHandler = (call: Call<RouteName>) => Promise<unknown>
type Outcome = Answer | { readonly sent: number }

/** Who asks, and for what where the path doesn't name it. */
export interface Entitled {
  readonly caller: Caller
  readonly targets?: Readonly<Record<string, string>>
}

/** A request that was let in. */
interface Asked {
  readonly name: Exclude<RouteName, 'connect'>
  readonly caller: Caller
  readonly signal: AbortSignal
}

const ANONYMOUS: Caller = { key: 'none', project: 'none', scope: 'read', isOperator: false }

/** Every route of the protocol, as one application. */
export function mountRoutes(options: MountOptions): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>({ strict: false })
  for (const name of Object.keys(ROUTES) as RouteName[]) {
    const { method, path } = ROUTES[name]
    // HEAD arrives as GET; `routeOf` tells them apart.
    if (method !== 'HEAD') app.on(method, path, (context) => answer(context, name, options))
  }
  app.all('*', (context) => answer(context, undefined, options))
  return app
}

async function answer(
  context: HttpContext,
  mounted: RouteName | undefined,
  options: MountOptions,
): Promise<Response> {
  const { incoming, outgoing } = context.env
  const startedMs = performance.now()
  const name = mounted && routeOf(mounted, incoming.method)
  let outcome: Outcome
  let error: SandlotError | undefined
  let who: Entitled | undefined
  try {
    checkAccess(incoming.headers, options.access)
    if (name === undefined) throw unknownRoute(incoming)
    outcome = await serve(context, name, options, (entitled) => {
      who = entitled
    })
  } catch (thrown) {
    error = toSandlotError(thrown)
    if (error.code === 'internal') options.log.error({ err: thrown }, 'a request failed')
    outcome = outgoing.headersSent ? { sent: outgoing.statusCode } : errorAnswer(error)
  }
  if (!('sent' in outcome)) sendAnswer(context.env, outcome)
  const status = 'sent' in outcome ? outcome.sent : outcome.status
  options.onAnswered({
    route: name ?? 'unknown',
    method: incoming.method ?? '',
    target: incoming.url ?? '',
    status,
    elapsedMs: performance.now() - startedMs,
    error,
    caller: who?.caller,
    targets: who?.targets ?? (context.req.param() as Record<string, string>),
    address: incoming.socket.remoteAddress ?? null,
  })
  return RESPONSE_ALREADY_SENT
}

async function serve(
  context: HttpContext,
  name: RouteName,
  options: MountOptions,
  onEntitled: (entitled: Entitled) => void,
): Promise<Outcome> {
  const { outgoing } = context.env
  const entitled = entitledTo(context, name, options)
  const { caller } = entitled
  if (caller !== ANONYMOUS) {
    onEntitled(entitled)
    options.rates.take(rateNameOf(caller))
    requireScope(caller, scopeOf(name))
    requireReach(caller, name, context.req.param('id'))
    // Before all is recovered, an answer such as “unknown” could be wrong.
    options.serving.checkStarted()
  }
  if (name === 'connect') throw upgradeWanted()
  if (NEEDS_DISK.has(name)) options.disk.check()
  const admitted = options.isOfAttempt(context.req.param('id'))
  using _ = BEGINS_WORK.has(name) ? options.serving.begin({ admitted }) : undefined
  const gone = goneSignal(outgoing)
  using _held = caller === ANONYMOUS ? undefined : options.rights.hold(caller, gone.lose)
  const asked = { name, caller, signal: gone.signal }
  const outcome = await perform(context, asked, options).catch((error) => {
    throw gone.lost ?? error
  })
  if (gone.lost && !('sent' in outcome)) throw gone.lost
  return outcome
}

/** By a key, by a right in the address, or as anybody. Who guesses is held up. */
function entitledTo(context: HttpContext, name: RouteName, options: MountOptions): Entitled {
  const { incoming } = context.env
  if (needsKey(name)) return { caller: letIn(incoming, options) }
  const token = context.req.param('token')
  if (token === undefined) return { caller: ANONYMOUS }
  try {
    return options.ofToken(token)
  } catch (error) {
    options.rates.refused(incoming.socket.remoteAddress ?? '')
    throw error
  }
}

/** Reads the request, does it, and makes its answer. */
async function perform(
  context: HttpContext,
  { name, caller, signal }: Asked,
  options: MountOptions,
): Promise<Outcome> {
  const { incoming, outgoing } = context.env
  const route: Route = ROUTES[name]
  const idempotencyKey = readKey(incoming)
  const query = parseQuery(route, context.req.queries())
  const json = route.body && route.body !== 'bytes' ? await readJson(incoming) : undefined
  const body = json === undefined ? undefined : parseBody(route, json)
  await requireNamedBlobs(options.holdings, caller.project, body)
  const sent = route.body === 'bytes' ? readBytes(incoming) : undefined
  const stream = sent && NEEDS_DISK.has(name) ? options.disk.bound(sent) : sent
  const respond = async (bytes: Bytes | undefined) => {
    const handler = options.handlers[name] as unknown as AnyHandler
    const result = await handler({
      params: context.req.param() as Record<string, string>,
      query,
      body: bytes ?? body,
      caller,
      signal,
      idempotencyKey,
      log: options.log,
    } as Call<RouteName>)
    return await finish(route, result, outgoing, signal)
  }
  if (idempotencyKey === undefined || !isMutation(route) || OWN_IDEMPOTENCY.has(name)) {
    return await respond(stream)
  }
  const request: Keyed = {
    project: spaceOf(caller),
    key: idempotencyKey,
    method: incoming.method ?? '',
    target: incoming.url ?? '',
  }
  const digest = new RequestDigest(request)
  if (json !== undefined) digest.add(JSON.stringify(json))
  return await options.idempotency.once(request, {
    digest: () => digest.finish(stream),
    keepsRefusals: stream === undefined,
    work: async () => (await respond(stream && digest.pass(stream))) as Answer,
  })
}

/** Turns what a handler gave into an answer; streams are sent here. */
async function finish(
  route: Route,
  result: unknown,
  outgoing: ServerResponse,
  signal: AbortSignal,
): Promise<Outcome> {
  const { answer: kind, status } = route
  if (kind === 'bytes' || kind === 'lines') {
    const lines = kind === 'lines'
    const { body, headers } = lines
      ? { body: asLines(result as AsyncIterable<unknown>), headers: {} }
      : (result as BytesAnswer)
    const contentType = lines ? 'application/x-ndjson' : 'application/octet-stream'
    await sendStream(outgoing, body, {
      status,
      headers: { 'content-type': contentType, 'x-content-type-options': 'nosniff', ...headers },
      signal,
    })
    return { sent: status }
  }
  if (kind === 'text') {
    const { text, contentType } = result as TextAnswer
    return { status, body: text, headers: { 'content-type': contentType } }
  }
  if (kind === 'none') {
    const headers = (result as HeadAnswer | undefined)?.headers ?? {}
    return { status, body: null, headers: { ...headers } }
  }
  return jsonAnswer(status, result)
}

function parseBody(route: Route, json: unknown): unknown {
  const parsed = parsedAs(route.body as z.ZodType, json)
  if (!parsed.success) throw invalidRequest('body', parsed.error)
  return parsed.data
}

/** A schema that contains itself is read recursively: what lies too deep in itself is the client's doing. */
function parsedAs(schema: z.ZodType, json: unknown): z.ZodSafeParseResult<unknown> {
  try {
    return schema.safeParse(json)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new SandlotError('invalid_request', 'body: lies too deep in itself', { cause: error })
  }
}

function readKey(incoming: IncomingMessage): string | undefined {
  const key = incoming.headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key !== 'string' || key === '' || key.length > SERVER_LIMITS.idempotencyKeyLength) {
    throw new SandlotError(
      'invalid_request',
      `idempotency-key: has 1 to ${SERVER_LIMITS.idempotencyKeyLength} characters`,
    )
  }
  return key
}

/** Where idempotency keys of a caller are its own: whoever has only a sandbox meets no key of the project. */
function spaceOf({ project, sandbox }: Caller): string {
  return sandbox === undefined ? project : `${project} ${sandbox.id}`
}

function isMutation(route: Route): boolean {
  return route.method !== 'GET' && route.method !== 'HEAD'
}

function upgradeWanted(): SandlotError {
  return new SandlotError('invalid_request', 'this route is a WebSocket', {
    hint: 'Connect with a WebSocket client, or use the SDK.',
  })
}

/**
 * Sandbox tokens: a right to drive one sandbox, given to code that is trusted with nothing else, such as a function that works on an
 * episode. Sent as a key is: `authorization: Bearer st_…`.
 *
 * It reaches the commands, files and trees of its sandbox over HTTP and the WebSocket, and ends at its time, with the sandbox, with
 * the key in whose name it was given, and with its lease where it names one.
 */
import { type ConnectRequest, type RouteName, SandlotError } from '@sandlot/protocol'
import { z } from 'zod'
import type { Caller, SandboxRight } from './keys.ts'
import type { Signer } from './signed.ts'

export interface SandboxTokenTerms {
  /** Id of the key in whose name it is given: it ends with that. */
  readonly key: string
  readonly project: string
  readonly sandbox: string
  /** A lease with which it ends. */
  readonly lease?: string
  /** At most a day away. */
  readonly expiresAtMs: number
}

/** @throws SandlotError `invalid_request` for a time that has passed or is too far away */
export function sandboxToken(signer: Signer, terms: SandboxTokenTerms): string {
  const { key, project, sandbox, lease, expiresAtMs } = terms
  const payload = { key, project, sandbox, ...(lease === undefined ? {} : { lease }) }
  return signer.sign('sandbox', payload satisfies z.input<typeof sandboxPayload>, expiresAtMs)
}

export function isSandboxToken(token: string): boolean {
  return token.startsWith('st_')
}

/** Who presents this token. @throws SandlotError `token_invalid`, `token_expired` */
export function callerOfToken(signer: Signer, token: string): Caller {
  const { payload, expiresAtMs } = signer.verify('sandbox', token)
  const { key, project, sandbox: id, lease } = sandboxPayload.parse(payload)
  return { key, project, scope: 'run', isOperator: false, sandbox: { id, lease, expiresAtMs } }
}

const sandboxPayload = z.object({
  key: z.string(),
  project: z.string(),
  sandbox: z.string(),
  lease: z.string().optional(),
})

/**
 * Lets a caller with a sandbox token pass to its sandbox, and one with a key anywhere that its scope allows.
 * @throws SandlotError `forbidden` for a route beside the sandbox, `sandbox_unknown` for another sandbox
 */
export function requireReach(caller: Caller, route: RouteName, id: string | undefined): void {
  if (caller.sandbox === undefined) return
  if (route === 'connect') return
  if (!ROUTES_OF_SANDBOX.has(route)) throw beyond(route)
  requireOwn(caller.sandbox, id)
}

/** The same for a request on the WebSocket. */
export function requireOpReach({ sandbox }: Caller, request: ConnectRequest): void {
  if (sandbox === undefined) return
  if (!OPS_OF_SANDBOX.has(request.op)) throw beyond(request.op)
  requireOwn(sandbox, 'sandbox' in request ? request.sandbox : undefined)
}

function requireOwn(right: SandboxRight, id: string | undefined): void {
  if (id === right.id) return
  const shown = JSON.stringify((id ?? '').slice(0, 64))
  throw new SandlotError('sandbox_unknown', `${shown} is not the sandbox of this token`)
}

function beyond(what: string): SandlotError {
  const message = `a sandbox token reaches commands and files of its sandbox, not ${what}`
  return new SandlotError('forbidden', message, { hint: 'Use a key of the project.' })
}

/** What is not named here is out of reach, whatever is added later. */
const ROUTES_OF_SANDBOX: ReadonlySet<RouteName> = new Set([
  'runExec',
  'listExecs',
  'killExec',
  'resizeExec',
  'readLog',
  'readFile',
  'writeFile',
  'removeFile',
  'statFile',
  'listFiles',
  'makeDirectory',
  'renameFile',
  'changeMode',
  'downloadTree',
  'uploadTree',
  'listPorts',
])

const OPS_OF_SANDBOX: ReadonlySet<ConnectRequest['op']> = new Set([
  'exec.start',
  'exec.attach',
  'file.read',
  'file.write',
  'file.list',
  'tar.out',
  'tar.in',
  'port.open',
  'port.wait',
])

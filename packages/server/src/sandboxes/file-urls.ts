/** Signed URLs of files: who has one reads or writes one file of one sandbox, without a key, until it expires or the sandbox ends. */
import { FILE_URL_METHODS, type FileUrlMethod, routePath, SandlotError } from '@sandlot/protocol'
import { z } from 'zod'
import type { Call, Handlers } from '../http/call.ts'
import type { Caller } from '../http/keys.ts'
import type { Rights } from '../http/rights.ts'
import type { Signer } from '../http/signed.ts'
import { SERVER_LIMITS } from '../limits.ts'
import type { Node } from '../node/node.ts'
import { lendFor, sandboxIdOf } from './use.ts'

type FileUrlRoutes = 'createFileUrl' | 'readSignedFile' | 'writeSignedFile'
type FileHandlers = Pick<Handlers, 'readFile' | 'writeFile' | 'statFile'>

export interface FileUrlParts {
  readonly signer: Signer
  readonly now: () => number
  /** The same as with a key. */
  readonly files: FileHandlers
  readonly node: Node
}

export function fileUrlHandlers(parts: FileUrlParts): Pick<Handlers, FileUrlRoutes> {
  const { signer, files, now } = parts
  return {
    createFileUrl: async (call) => {
      const { caller, params, body } = call
      const sandbox = sandboxIdOf(params.id)
      using _ = await lendFor(parts.node, call)
      const { path, world = 'main', method = 'GET', expires = SERVER_LIMITS.fileUrlMs } = body
      const expiresAtMs = now() + expires
      const { key, project } = caller
      const payload: FileRight = { key, project, sandbox, world, path, method }
      const token = signer.sign('file', payload, expiresAtMs)
      return { path: routePath('readSignedFile', { token }), expiresAtMs }
    },
    readSignedFile: async (call) => {
      const right = rightOf(signer, call.params.token, 'GET')
      const answer = await files.readFile(ofRight(call, right))
      return { body: answer.body, headers: { ...answer.headers, ...safeHeaders(right.path) } }
    },
    writeSignedFile: async (call) => {
      const right = rightOf(signer, call.params.token, 'PUT')
      return await files.writeFile({
        ...ofRight(call, right),
        body: call.body,
      } as Call<'writeFile'>)
    },
  }
}

const fileRight = z.object({
  key: z.string(),
  project: z.string(),
  sandbox: z.string(),
  world: z.enum(['main', 'grade']),
  path: z.string(),
  method: z.enum(FILE_URL_METHODS),
})
type FileRight = z.infer<typeof fileRight>

/**
 * Whose right the URL is, and to which sandbox: what is done by it is theirs, and ends with their key.
 * @throws SandlotError `token_invalid`, `token_expired`, `unauthorized` when its key is gone
 */
export function callerByFileUrl(signer: Signer, rights: Rights, token: string) {
  const right = readRight(signer, token)
  const caller = callerOf(right)
  rights.check(caller)
  return { caller, targets: { id: right.sandbox } }
}

/** @throws SandlotError `token_invalid`, `token_expired`, `forbidden` for the other method */
function rightOf(signer: Signer, token: string | undefined, method: FileUrlMethod): FileRight {
  const right = readRight(signer, token ?? '')
  if (right.method === method) return right
  const does = { GET: 'reads', PUT: 'writes' }
  throw new SandlotError('forbidden', `this URL ${does[right.method]} its file, and no more`, {
    hint: `Ask for one with \`method: '${method}'\`.`,
  })
}

function readRight(signer: Signer, token: string): FileRight {
  return fileRight.parse(signer.verify('file', token).payload)
}

function callerOf({ key, project }: FileRight): Caller {
  return { key, project, scope: 'run', isOperator: false }
}

/** The call that its owner would have made. */
function ofRight(
  call: Call<'readSignedFile'> | Call<'writeSignedFile'>,
  right: FileRight,
): Call<'readFile'> {
  const { path, world, sandbox } = right
  return {
    ...call,
    ...{ params: { id: sandbox }, query: { path, world }, body: undefined },
  }
}

/** What an episode wrote is never shown as a page of this daemon's: it is saved, whatever it says that it is. */
function safeHeaders(path: string): Record<string, string> {
  const name = encodeURIComponent(path.split('/').at(-1) || 'file').replace(/['()*]/g, percent)
  return {
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename*=UTF-8''${name}`,
    'content-security-policy': "sandbox; default-src 'none'",
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'cache-control': 'private, no-store',
  }
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

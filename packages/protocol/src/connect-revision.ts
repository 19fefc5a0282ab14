/** How a client and a daemon tell that they would misunderstand one another on the WebSocket, before either says anything. */
import { SandlotError } from './sandlot-error.ts'

/**
 * Of what is said on `GET /v1/connect`. Raised where a client or a daemon of before would misunderstand the other; what either can
 * do without leaves it as it is.
 */
export const CONNECT_REVISION = 2

/** The client says its revision in this header of the upgrade, the daemon its own as `protocol` of its hello. */
export const CONNECT_REVISION_HEADER = 'sandlot-protocol'

/** `undefined` where both are of one revision. One who says none, or nonsense, is of the first. */
export function revisionRefusal(said: {
  readonly client: unknown
  readonly daemon: unknown
  /** The daemon's version, which the client had better be of. */
  readonly version: string
}): SandlotError | undefined {
  const client = Number(said.client) || 1
  const daemon = Number(said.daemon) || 1
  if (client === daemon) return undefined
  const older = client < daemon ? 'client' : 'daemon'
  return new SandlotError(
    'protocol_differs',
    `the ${older} is the older one: the client speaks revision ${client} of the protocol, the daemon (${said.version}) revision ${daemon}`,
    older === 'client'
      ? {
          hint: `Install version ${said.version} of the client, as the daemon has, and start it anew: runs go on where they were.`,
        }
      : {},
  )
}

import { SandlotError } from '@sandlot/protocol'
import { type Endpoint, findLocalDaemon, parseUrl, runDirectory } from '../config.ts'

/** What a client was told; the rest is found. */
export interface Given {
  readonly url: string | undefined
  readonly apiKey: string | undefined
}

/** Where a daemon answers, with its key, or with what to say to who needs one. */
export type Located = Endpoint | { readonly url: string; readonly keyless: SandlotError }

/**
 * Where the daemon of a client answers, and its key: as given, else that of this machine's daemon as it says now.
 * @throws SandlotError `unreachable`, `invalid_request`
 */
export async function locate(given: Given): Promise<Located> {
  const url = given.url === undefined ? undefined : parseUrl(given.url)
  if (url && given.apiKey) return { url, apiKey: given.apiKey }
  const local = await findLocalDaemon()
  if (!local && !url) {
    const message = `no daemon runs here (${runDirectory()} tells of none), and SANDLOT_URL is not set`
    throw new SandlotError('unreachable', message, {
      hint: 'Start one with `sandlot serve`; in a script `await Sandlot.local()` starts one. One with another run directory is found by SANDLOT_RUN_DIRECTORY.',
    })
  }
  const chosen = url ?? parseUrl(local?.url ?? '')
  // The local key opens this machine's daemon: nobody else gets to see it.
  const isLocal = local !== undefined && chosen === parseUrl(local.url)
  const apiKey = given.apiKey ?? (isLocal ? local.apiKey : undefined)
  if (apiKey) return { url: chosen, apiKey }
  const message = `there is no key for the daemon at ${chosen}`
  const hint = isLocal
    ? `Set SANDLOT_API_KEY, or run as a user who may read ${local.keyPath}.`
    : 'Set SANDLOT_API_KEY.'
  return { url: chosen, keyless: new SandlotError('unauthorized', message, { hint }) }
}

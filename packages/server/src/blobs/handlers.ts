import type { Digest, Engine } from '@sandlot/engine'
import { isEngineError } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import type { Holdings } from '../holdings/holdings.ts'
import type { Handlers } from '../http/call.ts'
import { SERVER_LIMITS } from '../limits.ts'

type BlobRoutes = 'headBlob' | 'getBlob' | 'putBlob'

/** Contents by their digests: to each project those that it holds. */
export function blobHandlers({ blobs }: Engine, holdings: Holdings): Pick<Handlers, BlobRoutes> {
  return {
    headBlob: async ({ caller, params, signal }) => {
      const digest = digestOf(params.digest)
      const isHeld = await holdings.holds('blob', caller.project, digest)
      // Who asks leaves it out of what they send.
      const found = isHeld && (await blobs.has(digest, { signal, renew: true }))
      if (!found) throw unknown(params.digest)
      return { headers: { 'content-length': String(found.sizeBytes) } }
    },
    getBlob: async ({ caller, params, signal }) => {
      const digest = digestOf(params.digest)
      if (!(await holdings.holds('blob', caller.project, digest))) throw unknown(digest)
      try {
        const { body, sizeBytes } = await blobs.open(digest, { signal })
        return { body, headers: { 'content-length': String(sizeBytes) } }
      } catch (error) {
        throw isEngineError(error, 'not_found') ? unknown(digest) : error
      }
    },
    putBlob: async ({ caller, params, body, signal }) => {
      const expectDigest = digestOf(params.digest)
      const wasThere =
        holdings.isShared && (await blobs.has(expectDigest, { signal })) !== undefined
      const options = { sizeBytesMax: SERVER_LIMITS.blobBytes, signal }
      const stored = await blobs.put(body, { ...options, expectDigest })
      await holdings.add('blob', caller.project, expectDigest, wasThere)
      return stored
    },
  }
}

/** @throws SandlotError `invalid_request` */
function digestOf(text: string | undefined): Digest {
  if (text !== undefined && /^sha256:[0-9a-f]{64}$/.test(text)) return text as Digest
  throw new SandlotError(
    'invalid_request',
    `${JSON.stringify((text ?? '').slice(0, 80))} is not a digest`,
    { hint: 'A digest is sha256: and 64 hexadecimal digits in lower case.' },
  )
}

function unknown(digest: string | undefined): SandlotError {
  return new SandlotError('blob_unknown', `no content ${digest}`)
}

import type { Digest, Engine } from '@sandlot/engine'
import { isEngineError } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import type { Handlers } from '../http/call.ts'
import { SERVER_LIMITS } from '../limits.ts'

type BlobRoutes = 'headBlob' | 'getBlob' | 'putBlob'

/** Contents by their digests. */
export function blobHandlers({ blobs }: Engine): Pick<Handlers, BlobRoutes> {
  return {
    headBlob: async ({ params, signal }) => {
      // Who asks leaves it out of what they send.
      const found = await blobs.has(digestOf(params.digest), { signal, renew: true })
      if (!found) throw unknown(params.digest)
      return { headers: { 'content-length': String(found.sizeBytes) } }
    },
    getBlob: async ({ params, signal }) => {
      const digest = digestOf(params.digest)
      try {
        const { body, sizeBytes } = await blobs.open(digest, { signal })
        return { body, headers: { 'content-length': String(sizeBytes) } }
      } catch (error) {
        throw isEngineError(error, 'not_found') ? unknown(digest) : error
      }
    },
    putBlob: async ({ params, body, signal }) => {
      const options = { sizeBytesMax: SERVER_LIMITS.blobBytes, signal }
      return await blobs.put(body, { ...options, expectDigest: digestOf(params.digest) })
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

import type { ServerResponse } from 'node:http'
import { SandlotError } from '@sandlot/protocol'

export interface GoneSignal {
  readonly signal: AbortSignal
  /** How its right was lost; undefined where it was not. */
  readonly lost: SandlotError | undefined
  lose(why: SandlotError): void
}

/** Aborts when the client goes before its answer is complete, and when its right is lost meanwhile: `lost` says how then. */
export function goneSignal(outgoing: ServerResponse): GoneSignal {
  const controller = new AbortController()
  const gone = {
    signal: controller.signal,
    lost: undefined as SandlotError | undefined,
    lose: (why: SandlotError) => {
      gone.lost = why
      controller.abort(new SandlotError('cancelled', why.message))
    },
  }
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) {
      controller.abort(new SandlotError('cancelled', 'the client is gone'))
    }
  })
  return gone
}

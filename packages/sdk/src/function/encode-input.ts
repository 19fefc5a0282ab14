import { LIMITS, plainJson, SandlotError } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { putBytes } from '../image/blob.ts'
import type { EncodedInput } from './calls.ts'

/** An input as it travels. @throws SandlotError `invalid_request` for what is no plain data, `too_large` */
export async function encodeInput(
  context: ClientContext,
  value: unknown,
  name: string,
  waiting: Waiting = {},
): Promise<EncodedInput> {
  const json = jsonOf(value, name)
  if (json === undefined) return {}
  if (json.length * 3 <= LIMITS.inlineBytes) return { json }
  const bytes = new TextEncoder().encode(json)
  if (bytes.length <= LIMITS.inlineBytes) return { json }
  if (bytes.length > LIMITS.payloadBytes) {
    const message = `${name} has ${bytes.length} bytes as JSON; at most ${LIMITS.payloadBytes} are taken`
    throw new SandlotError('too_large', message, { hint: 'Put large data into the image.' })
  }
  return { blob: await putBytes(context, bytes, waiting) }
}

function jsonOf(value: unknown, name: string): string | undefined {
  try {
    return plainJson(value, name)
  } catch (cause) {
    throw new SandlotError('invalid_request', (cause as Error).message, {
      hint: 'What a function gets and returns travels as JSON: send a date as text, bytes as base64.',
      cause,
    })
  }
}

import { Refusal } from './refusal.ts'

/** What a refusal is over HTTP. */
export function answerOf(error: unknown): { status: number; reason: string; text: string } {
  const refusal =
    error instanceof Refusal ? error : new Refusal('unreachable', 'the connection failed')
  const { status, reason, message } = refusal
  return { status, reason, text: `sandlot: ${message}\n` }
}

/** The same as the bytes of an answer behind which the connection ends. */
export function answerText(error: unknown): string {
  const { status, reason, text } = answerOf(error)
  return (
    `HTTP/1.1 ${status} ${reason}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
    `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`
  )
}

import { Refusal } from './refusal.ts'

/** What a refusal is over HTTP. */
export function answerOf(error: unknown): { status: number; reason: string; text: string } {
  const refusal =
    error instanceof Refusal ? error : new Refusal('unreachable', 'the connection failed')
  const { status, reason, message } = refusal
  return { status, reason, text: `sandlot: ${message}\n` }
}

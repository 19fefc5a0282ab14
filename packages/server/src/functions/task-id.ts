import { SandlotError } from '@sandlot/protocol'

/** Ids are the engine's; no other is anybody's. */
export function isTaskId(text: string): boolean {
  return /^[0-9A-Za-z]{1,64}$/.test(text)
}

/** @throws SandlotError `invalid_request` */
export function taskId(text: string): string {
  if (isTaskId(text)) return text
  const shown = JSON.stringify(text.slice(0, 64))
  throw new SandlotError('invalid_request', `${shown} is not the id of a task`, {
    hint: 'Pass the `task` of a result, of a dead letter, or of what `put` gave.',
  })
}

/** What belongs to a queue is called after its uid, in every part of the engine. */

/** Results of tasks that no caller keeps apart. */
export const OWN_CALL = '0'

export const QUEUE_PREFIX = 'queue/'

export function recordKey(project: string, name: string): string {
  return `${QUEUE_PREFIX}${project}/${name}`
}

export function messagesOf(uid: string): string {
  return `queue/${uid}`
}

export function resultsPrefix(uid: string): string {
  return `queue-results/${uid}/`
}

export function resultsOf(uid: string, call: string): string {
  return resultsPrefix(uid) + call
}

/** Of one end of one task: each is recorded once. */
export function resultKey(task: string, replay: number): string {
  return `${task}#${replay}`
}

export function triesPrefix(uid: string): string {
  return `queue-tries/${uid}/`
}

export function deadPrefix(uid: string): string {
  return `queue-dead/${uid}/`
}

export function pinPrefix(uid: string): string {
  return `queue/${uid}/`
}

export function bundlePin(uid: string): string {
  return `${pinPrefix(uid)}bundle`
}

export function inputPins(uid: string): string {
  return `${pinPrefix(uid)}in/`
}

export function inputPin(uid: string, id: string): string {
  return inputPins(uid) + id
}

export function outputPin(uid: string, task: string, replay: number): string {
  return `${pinPrefix(uid)}out/${task}/${replay}`
}

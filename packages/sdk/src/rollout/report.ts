/** From what user code returned or threw to a worker's report. */
import { inspect } from 'node:util'
import { LIMITS, plainJson, type WorkerReport } from '@sandlot/protocol'
import { isModelError } from './model-error.ts'

/** What a report holds beside its data has to fit a frame with it. Characters. */
const REWARDS_LENGTH_MAX = 8_192
const CAUSES_LENGTH_MAX = 8_192
export const CAUSES_MAX = 8

type Returned = Extract<WorkerReport, { kind: 'returned' }>
type Invalid = Extract<WorkerReport, { kind: 'invalid' }>

/** Stores data that is too large to travel inline; returns its digest. */
export type StoreData = (bytes: Uint8Array) => Promise<string>

/** The report of an episode that returned. What is no result becomes `invalid` with the reason. */
export async function reportOfEpisode(returned: unknown, store: StoreData): Promise<WorkerReport> {
  if (returned === undefined || returned === null) return { kind: 'returned' }
  if (typeof returned !== 'object') {
    return invalid(
      `the episode returned ${shown(returned)}`,
      'return an object such as { reward: 1 }',
    )
  }
  const { data, limit } = returned as Record<string, unknown>
  const report = withRewards(returned)
  if (report.kind === 'invalid') return report
  if (limit !== undefined) {
    if (typeof limit !== 'string')
      return invalid(`limit is ${shown(limit)}`, "limit is text such as 'turns'")
    report.limit = limit.slice(0, LIMITS.nameLength)
  }
  return await withData(report, data, store)
}

/** The report of a grader that returned its verdict. */
export function reportOfVerdict(verdict: unknown): WorkerReport {
  if (isFiniteNumber(verdict)) return { kind: 'returned', reward: verdict }
  if (typeof verdict === 'object' && verdict !== null) {
    const report = withRewards(verdict)
    if (report.kind === 'invalid' || 'reward' in report || 'rewards' in report) return report
  }
  return invalid(
    `the grader returned ${shown(verdict)}`,
    'a verdict is a finite number, { reward } or { rewards }',
  )
}

function withRewards(given: object): Returned | Invalid {
  const { reward, rewards } = given as Record<string, unknown>
  const report: Returned = { kind: 'returned' }
  if (reward !== undefined) {
    if (!isFiniteNumber(reward))
      return invalid(`the reward is ${shown(reward)}`, 'a reward is a finite number')
    report.reward = reward
  }
  if (rewards !== undefined) {
    const wrong = wrongReward(rewards)
    if (wrong) return invalid(wrong, 'rewards are finite numbers by name')
    report.rewards = rewards as Record<string, number>
  }
  return report
}

/** The report of user code that threw, be it something that throws when it is looked at. */
export function reportOfFailure(thrown: unknown): WorkerReport {
  try {
    return { kind: isModelError(thrown) ? 'model_failed' : 'threw', cause: causesOf(thrown) }
  } catch {
    return { kind: 'threw', cause: [UNREADABLE] }
  }
}

async function withData(report: Returned, data: unknown, store: StoreData): Promise<WorkerReport> {
  let json: string | undefined
  try {
    json = plainJson(data, 'data')
  } catch (error) {
    return invalid(textOfError(error), 'the grader and the trainer get it as JSON')
  }
  if (json === undefined) return report
  const bytes = new TextEncoder().encode(json)
  if (bytes.length > LIMITS.payloadBytes) {
    return invalid(`the data has ${bytes.length} bytes`, `at most ${LIMITS.payloadBytes} are taken`)
  }
  return bytes.length <= LIMITS.inlineBytes
    ? { ...report, dataJson: json }
    : { ...report, dataBlob: await store(bytes) }
}

function wrongReward(rewards: unknown): string | undefined {
  if (typeof rewards !== 'object' || rewards === null || Array.isArray(rewards))
    return `rewards is ${shown(rewards)}`
  for (const [name, value] of Object.entries(rewards)) {
    if (!isFiniteNumber(value)) return `the reward ${JSON.stringify(name)} is ${shown(value)}`
    if (name === '__proto__') return `a reward is named ${name}, which no decoder takes`
  }
  const { length } = Object.keys(rewards)
  if (length === 0) return 'rewards is empty'
  if (JSON.stringify(rewards).length > REWARDS_LENGTH_MAX) {
    return `the ${length} rewards take more than ${REWARDS_LENGTH_MAX} characters as JSON`
  }
  return undefined
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** The message of an error and of each cause below it, the outermost first, as long as a report takes them. */
export function causesOf(thrown: unknown): string[] {
  const causes: string[] = []
  let left = CAUSES_LENGTH_MAX
  let error: unknown = thrown
  do {
    const text = textOfError(error).slice(0, Math.min(left, LIMITS.causeLength))
    causes.push(text)
    left -= text.length
    error = error instanceof Error ? error.cause : undefined
  } while (error !== undefined && causes.length < CAUSES_MAX && left > 0)
  return causes
}

export const UNREADABLE = 'something was thrown that has no text'

function textOfError(error: unknown): string {
  try {
    if (error instanceof Error) return `${error.name}: ${error.message || codeOf(error)}`
    if (error === undefined || error === null) return `${error} was thrown`
    return typeof error === 'object' || typeof error === 'function'
      ? inspect(error, AS_TEXT)
      : String(error)
  } catch {
    return UNREADABLE
  }
}

/** Where several addresses refuse a connection, the error that has them all says so by its code alone. */
function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : ''
}

/** Bounded, and without any code of what is shown. */
const AS_TEXT = {
  ...{ depth: 1, maxArrayLength: 10, maxStringLength: 200, breakLength: Number.POSITIVE_INFINITY },
  customInspect: false,
} as const

function invalid(what: string, wanted: string): Invalid {
  return { kind: 'invalid', cause: [`${what}; ${wanted}`.slice(0, LIMITS.causeLength)] }
}

function shown(value: unknown): string {
  if (typeof value === 'string') return `the text ${JSON.stringify(value.slice(0, 80))}`
  if (typeof value === 'object' && value !== null) return 'an object'
  return String(value)
}

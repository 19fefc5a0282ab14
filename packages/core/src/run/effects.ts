import { CORE_LIMITS } from '../limits.ts'
import type { Effect, LeaseOffer, UnrecordedGroup, UnrecordedRow } from './effect.ts'
import type { Attempt, Episode, Run } from './run.ts'
import { timeoutsOf } from './timeouts-of.ts'

/** The attempt that an episode must have in the phase it is in. */
export function attemptOf(episode: Episode): Attempt {
  if (!episode.current) throw new Error(`episode ${episode.index} has no attempt`)
  return episode.current
}

export function acquireEffect(episode: Episode): Effect {
  return { type: 'acquire_sandbox', ...task(episode), dueMs: episode.dueMs ?? 0 }
}

export function setupEffect(episode: Episode): Effect {
  return { type: 'run_setup', ...inSandbox(episode), dueMs: commandDueMs(episode) }
}

export function gradeEffect(episode: Episode): Effect {
  return {
    type: 'start_grade',
    ...inSandbox(episode),
    ...storedData(episode),
    dueMs: commandDueMs(episode),
  }
}

export function offerEffect(run: Run, episode: Episode): LeaseOffer {
  const { worker, policyVersion } = attemptOf(episode)
  const timeoutMs = timeoutsOf(run, episode)
  const phase = episode.phase === 'grade_offered' ? 'grade' : 'agent'
  return {
    type: 'offer_lease',
    phase,
    worker: worker ?? '',
    ...inSandbox(episode),
    group: episode.group ?? episode.key,
    member: episode.member,
    seed: episode.seed,
    policyVersion,
    ...storedData(episode),
    timeoutMs: phase === 'grade' ? timeoutMs.grade : timeoutMs.agent,
    modelTimeoutMs: timeoutMs.model,
  }
}

export function releaseEffect(episode: Episode): Effect {
  const { sandbox, node, leaves, releaseTries } = attemptOf(episode)
  return {
    type: 'release_sandbox',
    episode: episode.index,
    attempt: episode.attempt,
    sandbox,
    node,
    // It had its time: from the second try on the sandbox is only given back.
    ...(leaves && releaseTries === 0 ? { leaves } : {}),
  }
}

/** When the time of a set-up, or of a grade by the daemon, is over. The phase itself is due when that should have been heard. */
function commandDueMs({ dueMs }: Episode): number {
  return (dueMs ?? 0) - CORE_LIMITS.stopMs
}

/** What stops the one thing in progress; undefined where nothing is. */
export function revokeEffect(episode: Episode, cause: string): Effect | undefined {
  const { token, worker } = attemptOf(episode)
  if (token === null) return undefined
  const address = { episode: episode.index, attempt: episode.attempt, token }
  if (worker !== null) return { type: 'cancel_worker', worker, ...address, cause }
  return episode.phase === 'grading' ? { type: 'cancel_grade', ...address } : undefined
}

/** Every effect whose answer has not come: what a coordinator that came back asks for again. */
export function openEffects(run: Run, effects: Effect[]): void {
  for (const [seq, item] of run.unrecorded) {
    if (isGroup(item)) effects.push({ type: 'append_group', seq, group: item })
    else effects.push({ type: 'append_result', seq, row: item })
  }
  for (const episode of run.index.slots) {
    const effect = openEffect(run, episode)
    if (effect) effects.push(effect)
  }
}

export function isGroup(item: UnrecordedRow | UnrecordedGroup): item is UnrecordedGroup {
  return 'episodes' in item
}

function openEffect(run: Run, episode: Episode): Effect | undefined {
  switch (episode.phase) {
    case 'creating':
      return acquireEffect(episode)
    case 'setup':
      return setupEffect(episode)
    case 'offered':
    case 'grade_offered':
      return offerEffect(run, episode)
    case 'grading':
      return episode.current?.worker === null ? gradeEffect(episode) : undefined
    case 'releasing':
      return releaseEffect(episode)
    default:
      return undefined
  }
}

function task(episode: Episode) {
  const { index, attempt, key, taskJson, taskBlob, own } = episode
  return { episode: index, attempt, key, taskJson, taskBlob, own: own?.more ?? null }
}

function inSandbox(episode: Episode) {
  const { token, sandbox, node } = attemptOf(episode)
  return { ...task(episode), token: token ?? 0, sandbox: sandbox ?? '', node: node ?? '' }
}

function storedData(episode: Episode) {
  const report = attemptOf(episode).report
  return { dataJson: report?.dataJson ?? null, dataBlob: report?.dataBlob ?? null }
}

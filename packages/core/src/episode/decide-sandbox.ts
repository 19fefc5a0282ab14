import { otherInProgress } from '../hedge/hedge.ts'
import { CORE_LIMITS } from '../limits.ts'
import {
  addressOf,
  currentEpisode,
  type Decision,
  emit,
  fencedEpisode,
  ignore,
  nextLease,
} from '../run/decision.ts'
import type { AttemptAddress, Fenced, InputOf } from '../run/input.ts'
import type { Episode, Run } from '../run/run.ts'
import { endAttempt, giveUpBeside } from './decide-end.ts'
import type { Ending } from './ending.ts'
import { endingOfFate, overruledBy } from './fate.ts'
import { late } from './late.ts'
import { giveUp, settle } from './settle.ts'

export function decideReady(decision: Decision, input: InputOf<'sandbox_ready'>): void {
  const { run, step } = decision
  const episode = currentEpisode(decision, input)
  if (episode?.phase === 'creating') {
    const { sandbox, node, createMs } = input
    const next = run.policy.setup ? { token: run.nextToken } : nextLease(run, run.index.ready)
    emit(decision, {
      type: 'sandbox_bound',
      ...addressOf(episode),
      sandbox,
      node,
      createMs: positive(createMs),
      ...next,
    })
    if (!run.policy.setup) leaveBehind(decision, episode)
    return
  }
  if (episode?.current?.sandbox === input.sandbox) {
    ignore(decision, 'the sandbox is known')
    return
  }
  // Nobody waits for it any more. Giving it back needs no record: should it be forgotten, its node
  // ends it for want of an owner.
  ignore(decision, 'nobody waits for the sandbox any more')
  const { episode: index, attempt, sandbox, node } = input
  step.effects.push({ type: 'release_sandbox', episode: index, attempt, sandbox, node })
}

export function decideFailed(decision: Decision, input: InputOf<'sandbox_failed'>): void {
  const { run } = decision
  const episode = currentEpisode(decision, input)
  if (!episode) return
  if (episode.phase === 'releasing' && episode.current?.sandbox === null) {
    emit(decision, { type: 'torn_down', ...addressOf(episode) })
  } else if (episode.phase === 'creating') {
    endAttempt(decision, episode, { ending: endingWithout(run, episode, input), gone: true })
  } else {
    ignore(decision, 'the sandbox was there already')
  }
}

/** That others have all the room is no fault of the attempt's, and waiting for it costs no retry: the run says what limits it. */
function endingWithout(
  run: Run,
  episode: Episode,
  { fault, cause }: InputOf<'sandbox_failed'>,
): Ending {
  if (fault === 'capacity') {
    return { ...giveUp(cause, false), delayMs: CORE_LIMITS.retryDelayMs }
  }
  const outcome = fault === 'caller' ? 'task_invalid' : 'infra_create'
  return settle(run, episode, { outcome, cause: [cause] })
}

export function decideLost(decision: Decision, input: InputOf<'sandbox_lost'>): void {
  const { run } = decision
  const { fate } = input
  const episode = episodeOfSandbox(decision, input)
  if (!episode) return
  if (episode.phase === 'releasing') {
    decideTornDown(decision, input)
    return
  }
  endAttempt(decision, episode, {
    ending: endingOfFate(run, episode, episode.phase, fate),
    gone: true,
    revoke: 'the sandbox is gone',
    ...(episode.current?.sandbox === null ? { sandbox: input.sandbox } : {}),
    ...(fate.usage ? { usage: fate.usage } : {}),
  })
}

export function decideTornDown(
  decision: Decision,
  input: OfSandbox & Pick<InputOf<'torn_down'>, 'fate' | 'flags' | 'usage' | 'left'>,
): void {
  const episode = episodeOfSandbox(decision, input)
  if (!episode) return
  if (episode.phase !== 'releasing') {
    ignore(decision, 'nobody asked for its end')
    return
  }
  const { fate, flags, left } = input
  // What became of an attempt that did not go on is nobody's result.
  const overruled = fate && !episode.isHedge
  const ending = overruled ? overruledBy(decision.run, episode, fate) : undefined
  const usage = input.usage ?? fate?.usage
  emit(decision, {
    type: 'torn_down',
    ...addressOf(episode),
    ...(ending ? { ending } : {}),
    ...(flags && flags.length > 0 ? { flags } : {}),
    ...(usage ? { usage } : {}),
    ...(left ? { left } : {}),
  })
}

export function decideSetupDone(decision: Decision, input: Fenced): void {
  const episode = fencedEpisode(decision, input)
  if (episode?.phase !== 'setup') return
  const { run } = decision
  emit(decision, {
    type: 'setup_done',
    ...addressOf(episode),
    ...nextLease(run, run.index.ready),
  })
  leaveBehind(decision, episode)
}

export function decideSetupFailed(decision: Decision, input: InputOf<'setup_failed'>): void {
  const episode = fencedEpisode(decision, input)
  if (episode?.phase !== 'setup') return
  const outcome = input.fault === 'platform' ? 'infra_create' : 'setup_error'
  const cause =
    input.fault === 'late'
      ? `${late(decision, episode, 'the set-up did not end', 'setup')}: ${input.cause}`
      : input.cause
  const ending = settle(decision.run, episode, { outcome, cause: [cause] })
  endAttempt(decision, episode, { ending })
}

/** The sandbox is prepared: the other attempt, where it is not that far, is not needed any more. */
function leaveBehind(decision: Decision, episode: Episode): void {
  const other = otherInProgress(decision.run, episode)
  if (other?.phase !== 'creating' && other?.phase !== 'setup') return
  giveUpBeside(decision, other, 'the other attempt was prepared first')
}

type OfSandbox = AttemptAddress & { readonly sandbox: string | null }

/** The episode, unless it is another sandbox of the same attempt that is spoken of. */
function episodeOfSandbox(decision: Decision, input: OfSandbox): Episode | undefined {
  const episode = currentEpisode(decision, input)
  const bound = episode?.current?.sandbox ?? null
  if (bound === null || bound === input.sandbox) return episode
  return ignore(decision, 'it is not the sandbox that the attempt works in')
}

function positive(ms: number): number {
  return Number.isFinite(ms) && ms > 0 ? ms : 0
}

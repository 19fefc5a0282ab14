import { attemptInProgress } from '../hedge/hedge.ts'
import { applyWith } from './apply.ts'
import type { Effect } from './effect.ts'
import type { EventBody, Next, RunEvent } from './event.ts'
import type { AttemptAddress, Fenced } from './input.ts'
import type { Episode, Run } from './run.ts'

/** What one input led to. The run has taken the events already; the world waits for the log. */
export interface Step {
  /** To be appended, in order. */
  readonly events: RunEvent[]
  /** To be started once the events are durable, in order. */
  readonly effects: Effect[]
  /** Why the input changed nothing: it was late, doubled, or has been overtaken. */
  ignored?: string
  /** Of `tasks_put`: how many were new, and how many were there with the same content. */
  put?: { readonly added: number; readonly known: number }
  /** There is more to decide than one step may: tick again soon. */
  more: boolean
}

/** The work on one input. */
export interface Decision {
  readonly run: Run
  readonly nowMs: number
  readonly step: Step
}

/** Decides: the event is applied at once, so that the next decision rests on it. */
export function emit(decision: Decision, body: EventBody): void {
  const event = { ...body, atMs: decision.nowMs } as RunEvent
  decision.step.events.push(event)
  applyWith(decision.run, event, decision.step.effects)
}

export function ignore(decision: Decision, why: string): undefined {
  decision.step.ignored = why
  return undefined
}

/** The episode, or its hedge, if the attempt is in progress. */
export function currentEpisode(decision: Decision, input: AttemptAddress): Episode | undefined {
  const { run } = decision
  const episode = attemptInProgress(run, input)
  if (episode) return episode
  return ignore(
    decision,
    run.live.has(input.episode) ? 'the attempt is over' : 'the episode is over',
  )
}

/** The episode, if the token is that of what is in progress. */
export function fencedEpisode(decision: Decision, input: Fenced): Episode | undefined {
  const episode = currentEpisode(decision, input)
  if (!episode) return undefined
  if (episode.current?.token !== input.token) return ignore(decision, 'the lease is over')
  return episode
}

/** The address of an episode's attempt, as events carry it. */
export function addressOf(episode: Episode): {
  readonly episode: number
  readonly attempt: number
} {
  return { episode: episode.index, attempt: episode.attempt }
}

/** A lease for the next free worker, if there is one and nobody waits longer. */
export function nextLease(run: Run, waiting: { readonly size: number }): Next {
  if (waiting.size > 0) return {}
  const [worker] = run.index.free
  return worker ? { worker: worker.name, token: run.nextToken } : {}
}

/** How a grade begins: by the daemon at once, or with a worker. */
export function nextGrade(run: Run): Next {
  if (run.policy.grade === 'daemon') return { token: run.nextToken }
  return nextLease(run, run.index.gradeReady)
}

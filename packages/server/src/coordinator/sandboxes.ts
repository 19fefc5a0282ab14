import { type AttemptAddress, type Effect, isCurrent } from '@sandlot/core'
import type { Clock, Engine } from '@sandlot/engine'
import { argvOf, type PhaseNetwork, SandlotError } from '@sandlot/protocol'
import { endedHow, withWords } from '../node/ended-how.ts'
import type { NodePort } from '../node/port.ts'
import { execId, sandboxId } from './ids.ts'
import type { LeavesUnderWay } from './leaves-under-way.ts'
import { type SandboxKeeper, takeWhatIsLeft } from './leaving.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import { termsOf } from './own-terms.ts'
import type { RunActor } from './run-actor.ts'
import type { RunRecord } from './run-record.ts'
import { endingIn, fateOf, fateOfReleased, isReleased, RELEASED, usageOf } from './sandbox-fate.ts'
import type { TaskStore } from './task-store.ts'

/** The sandboxes of one run's attempts: asked of the node, prepared, given back. Every answer goes to the run's actor. */
export interface Sandboxes {
  acquire(effect: EffectOf<'acquire_sandbox'>): void
  runSetup(effect: EffectOf<'run_setup'>): void
  release(effect: EffectOf<'release_sandbox'>): void
}

export type EffectOf<T extends Effect['type']> = Extract<Effect, { type: T }>

export interface SandboxWork {
  readonly record: RunRecord
  readonly node: NodePort
  readonly clock: Clock
  readonly keeper: SandboxKeeper
  readonly leaves: LeavesUnderWay
  /** Keeps a blob for as long as the run. */
  keepBlob(digest: string): Promise<void>
  /** Aborts when the coordinator stops: what was begun goes on, and is asked for again. */
  readonly signal: AbortSignal
  readonly engine: Pick<Engine, 'blobs'>
  readonly actor: RunActor
  readonly tasks: TaskStore
  /** Something of ours failed that has no place in a result. */
  warn(message: string, error: unknown): void
}

export function openSandboxes(work: SandboxWork): Sandboxes {
  const { record, node, clock, signal, actor, tasks, warn } = work
  const { specification } = record

  async function acquire(effect: EffectOf<'acquire_sandbox'>) {
    const { episode, attempt, key } = effect
    try {
      const terms = termsOf(specification, await tasks.loadOwn(effect.own))
      if (terms.quarantine !== undefined) {
        const cause = `in quarantine: ${terms.quarantine}`
        actor.post({ type: 'sandbox_failed', episode, attempt, fault: 'caller', cause })
        return
      }
      const sandbox = await node.acquire(
        {
          sandbox: sandboxId(record.id, effect),
          image: terms.image,
          ...terms.memory,
          resources: terms.resources,
          project: record.project,
          owner: `${record.name}/${key}/${attempt}`,
          epoch: 1,
          env: terms.env,
          ...(terms.workdir === null ? {} : { workdir: terms.workdir }),
          ...(terms.user === null ? {} : { user: terms.user }),
          network: terms.network,
          ...(terms.secrets ? { secrets: terms.secrets } : {}),
          ...(terms.program?.model ? { model: terms.program.model.url } : {}),
          phase: specification.setup.length > 0 ? 'setup' : 'agent',
          // The rest is for the creation: one that waits for room in vain is told so before its time is up.
          waitMs: Math.ceil(leftMs(clock, effect.dueMs) / 2),
        },
        { signal },
      )
      const createMs = sandbox.createMs ?? 0
      actor.post({
        type: 'sandbox_ready',
        ...{ episode, attempt, sandbox: sandbox.sandbox, node: sandbox.node, createMs },
      })
    } catch (error) {
      // One that was ended while it came up was not refused: its fate says what that comes to.
      if (isStopping(error, signal) || postedLoss(work, effect, error)) return
      actor.post({ type: 'sandbox_failed', episode, attempt, ...failureOf(error) })
    }
  }

  async function runSetup(effect: EffectOf<'run_setup'>) {
    const { episode, attempt, token, sandbox } = effect
    const of = { episode, attempt, token }
    try {
      for (const [step, command] of await commandsLeft(work, effect)) {
        if (!isCurrent(actor.run, of)) return
        const end = await node.exec(
          {
            sandbox,
            exec: execId(record.id, token, step),
            argv: argvOf(command as string),
            timeoutMs: leftMs(clock, effect.dueMs),
            headBytes: 0,
            tailBytes: COORDINATOR_LIMITS.commandTailBytes,
          },
          { signal },
        )
        if (end.timedOut) {
          const cause = withWords(`its command ${step + 1}`, end)
          actor.post({ type: 'setup_failed', ...of, fault: 'late', cause })
          return
        }
        if (end.exitCode !== 0) {
          const cause = `set-up command ${step + 1} ${endedHow(end)}`
          actor.post({ type: 'setup_failed', ...of, fault: 'workload', cause })
          return
        }
      }
      const { network } = termsOf(specification, await tasks.loadOwn(effect.own))
      if (hasPolicies(network)) await node.enterPhase({ sandbox, phase: 'agent' }, { signal })
      actor.post({ type: 'setup_done', ...of })
    } catch (error) {
      if (isStopping(error, signal) || postedLoss(work, of, error)) return
      const fault = isOfWorkload(error) ? 'workload' : 'platform'
      actor.post({ type: 'setup_failed', ...of, fault, cause: messageOf(error) })
    }
  }

  async function release(effect: EffectOf<'release_sandbox'>) {
    const { episode, attempt } = effect
    const sandbox = sandboxId(record.id, effect)
    try {
      const left = effect.leaves ? await work.leaves.track(takeWhatIsLeft(work, effect)) : undefined
      const ended = await node.release(
        { sandbox, reason: RELEASED },
        { signal, timeoutMs: COORDINATOR_LIMITS.releaseMs },
      )
      const fate = isReleased(ended) ? fateOfReleased(ended) : fateOf(ended, record)
      actor.post({
        type: 'torn_down',
        ...{ episode, attempt, sandbox: effect.sandbox },
        ...{ flags: ended.flags, usage: usageOf(ended) },
        ...(left ? { left } : {}),
        ...(fate ? { fate } : {}),
      })
    } catch (error) {
      // Core asks again after a while; a sandbox that nobody owns any more the node ends by itself.
      if (!isStopping(error, signal)) warn(`could not release ${sandbox}`, error)
    }
  }

  return {
    acquire: (effect) => void acquire(effect),
    runSetup: (effect) => void runSetup(effect),
    release: (effect) => void release(effect),
  }
}

/**
 * From the latest that an earlier daemon has begun. They run one after another, so that all before it have succeeded, and it alone need be
 * remembered by the sandbox: of those that ended it forgets the oldest.
 */
async function commandsLeft(
  { record, node, signal }: SandboxWork,
  { token, sandbox }: EffectOf<'run_setup'>,
) {
  const commands = [...record.specification.setup.entries()]
  if (commands.length < 2) return commands
  const known = await node.knownExecs({ sandbox }, { signal })
  const latest = commands.findLastIndex(([step]) => known.has(execId(record.id, token, step)))
  return commands.slice(Math.max(0, latest))
}

/** Whether a phase may reach anything: without it nothing changes between them. */
export function hasPolicies(network: PhaseNetwork): boolean {
  return Object.values(network).some((policy) => policy !== 'none')
}

export function leftMs(clock: Clock, dueMs: number): number {
  return Math.max(1, Math.ceil(dueMs - clock.now()))
}

/** The sandbox ended under the work: the loss is what is reported, whatever the node's feed says of it later. */
export function postedLoss(
  { actor, record }: Pick<SandboxWork, 'actor' | 'record'>,
  { episode, attempt }: AttemptAddress,
  error: unknown,
) {
  const ended = endingIn(error)
  if (ended !== undefined && !isReleased(ended)) {
    const { sandbox } = ended
    actor.post({ type: 'sandbox_lost', episode, attempt, sandbox, fate: fateOf(ended, record) })
  }
  // Released by us: what was under way is not wanted any more.
  return ended !== undefined
}

/** The daemon or its node stops: nothing was decided, and the work is taken up again by the next start. */
export function isStopping(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted || (error instanceof SandlotError && error.code === 'draining')
}

export function isOfWorkload(error: unknown): boolean {
  return error instanceof SandlotError && (error.fault === 'workload' || error.fault === 'caller')
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function failureOf(error: unknown): {
  fault: 'caller' | 'capacity' | 'platform'
  cause: string
} {
  const fault = error instanceof SandlotError ? error.fault : 'platform'
  return { fault: fault === 'workload' ? 'platform' : fault, cause: messageOf(error) }
}

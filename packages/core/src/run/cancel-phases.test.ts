import type { RunCreate } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { EPISODE_PHASES, type EpisodePhase } from '../episode/phase.ts'
import { addressOf, type ScriptedRun, scriptedRun, textOf } from '../simulation/scripted-run.ts'

const worker = { type: 'worker_attached', worker: 'w', slots: 1, held: [] } as const

interface Way {
  readonly spec?: Partial<RunCreate>
  /** One episode is being created, and the worker is free. */
  reach(script: ScriptedRun): void
  /** Where the end is decided already. */
  readonly outcome?: string
}

/** How an episode gets into each phase. */
const WAYS: Readonly<Record<Exclude<EpisodePhase, 'ended'>, Way>> = {
  queued: { spec: { concurrency: 1 }, reach: (script) => script.put(1) },
  backoff: {
    spec: { retry: { model: 1 } },
    reach(script) {
      reported(script, { kind: 'model_failed', cause: ['503'] })
      tornDown(script)
    },
  },
  creating: { reach: () => {} },
  setup: { spec: { setup: ['true'] }, reach: created },
  ready: {
    reach(script) {
      created(script)
      script.put(1)
      created(script)
    },
  },
  offered: { reach: created },
  agent: { reach: (script) => void script.toAgent() },
  model: {
    reach: (script) => void script.tell({ type: 'model_started', ...addressOf(script.toAgent()) }),
  },
  stopping: {
    spec: { program: { command: ['true'] }, timeout: { agent: 1_000 } },
    reach(script) {
      script.toAgent()
      script.pass(1_500)
    },
  },
  grade_ready: {
    spec: { grade: { kind: 'worker', in: 'world' } },
    reach(script) {
      const lease = addressOf(script.toAgent())
      script.tell({ type: 'worker_detached', worker: 'w' })
      script.tell({ type: 'reported', ...lease, report: { kind: 'returned' } })
    },
  },
  grade_offered: { spec: { grade: { kind: 'worker', in: 'world' } }, reach: reported },
  grading: {
    spec: { grade: { kind: 'command', command: ['true'], in: 'world' } },
    reach: reported,
  },
  releasing: {
    reach: (script) => reported(script, { kind: 'returned', reward: 1 }),
    outcome: 'graded',
  },
}

const phases = EPISODE_PHASES.filter((phase) => phase !== 'ended')

test.each(phases)(
  'a run that is cancelled while an episode is in %s ends, with one row of each',
  (phase) => {
    const { spec, reach, outcome = 'cancelled_user' } = WAYS[phase]
    const script = scriptedRun({ ...spec })
    script.tell(worker)
    script.put(1)
    reach(script)
    expect(script.run.index.counts[phase]).toBe(1)
    const [before] = [...script.run.live.values()].filter((episode) => episode.phase === phase)
    script.tell({ type: 'cancel', cause: 'by a person' })
    expect(script.tell({ type: 'cancel', cause: 'again' }).ignored).toBe('the run is cancelling')
    script.tell({ type: 'tasks_closed' })
    // Whoever was at work hears of it, and what it says now changes nothing.
    const said = script.effects.findLast((effect) => effect.type === 'offer_lease')
    if (said) {
      const late = { kind: 'returned', reward: 1 } as const
      script.tell({ type: 'reported', ...addressOf(said as never), report: late })
    }
    for (const effect of script.effects) {
      if (effect.type !== 'release_sandbox') continue
      const { episode, attempt, sandbox } = effect
      script.tell({ type: 'torn_down', episode, attempt, sandbox })
    }
    const { tasks } = script.run.totals
    expect(script.rows.map(({ index }) => index).sort()).toEqual(
      Array.from({ length: tasks }, (_, n) => n),
    )
    const row = script.rows.find(({ index }) => index === before?.index)
    expect(row).toMatchObject({ outcome, reward: outcome === 'graded' ? 1 : null })
    script.tell({ type: 'results_recorded', through: tasks })
    expect(script.run.status).toBe('finished')
    expect(textOf(script.replayed())).toBe(textOf(script.run))
  },
)

function created(script: ScriptedRun): void {
  const { episode, attempt } = script.last('acquire_sandbox')
  const sandbox = `sb_${episode}`
  script.tell({ type: 'sandbox_ready', episode, attempt, sandbox, node: 'n', createMs: 5 })
}

function reported(script: ScriptedRun, report: object = { kind: 'returned' }): void {
  const lease = addressOf(script.toAgent())
  script.tell({ type: 'reported', ...lease, report: report as never })
}

function tornDown(script: ScriptedRun): void {
  const { episode, attempt, sandbox } = script.last('release_sandbox')
  script.tell({ type: 'torn_down', episode, attempt, sandbox })
}

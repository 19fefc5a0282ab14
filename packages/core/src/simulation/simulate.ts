import type { Effect } from '../run/effect.ts'
import { createFakeCoordinator, type FakeCoordinator } from './fake-coordinator.ts'
import { createFakeGrader } from './fake-grader.ts'
import { createFakeNode } from './fake-node.ts'
import { createFakeWorker, type FakeWorker } from './fake-worker.ts'
import { checkEndedGroups, checkGroups } from './group-invariants.ts'
import { checkHedged, checkHedges } from './hedge-invariants.ts'
import { BrokenInvariant, checkDecisions, checkEnd, checkReplay, checkStep } from './invariants.ts'
import { createLink } from './link.ts'
import {
  type Address,
  countHeld,
  countOwned,
  crash,
  type Parts,
  planFaults,
  planReader,
  planReconcile,
  planSetup,
  planTasks,
  planUser,
  reconcile,
  sendToWorker,
  tellCapacity,
} from './plans.ts'
import { createRandom } from './random.ts'
import { drawScenario } from './scenario.ts'
import { createTimeline } from './timeline.ts'
import { createTruth } from './truth.ts'
import type { OfSandbox, World } from './world.ts'

/** What one seed came to. */
export interface Simulated {
  readonly seed: number
  readonly episodes: number
  readonly steps: number
  readonly events: number
  readonly simulatedMs: number
  readonly outcomes: Readonly<Record<string, number>>
  /** What ended groups. */
  readonly reasons: Readonly<Record<string, number>>
  readonly hedges: { readonly started: number; readonly won: number }
}

/** However much goes wrong, a run of this size is over by then; anything longer hangs. */
const OVER_BY_MS = 8 * 3_600_000
const STEPS_MAX = 400_000

/**
 * One run in a world that one seed makes: slow and mortal nodes and workers, lost, late and doubled
 * messages, a coordinator that is killed, a user who pauses and cancels.
 * @throws BrokenInvariant, or whatever core threw; the seed gives the same again.
 */
export function simulate(seed: number): Simulated {
  const simulation = createSimulation(seed)
  const { world, coordinator } = simulation
  let left = STEPS_MAX
  while (!simulation.isOver()) {
    if (!world.timeline.step())
      throw new BrokenInvariant('the run ends: nothing is planned any more')
    if (--left === 0 || world.timeline.nowMs > OVER_BY_MS) {
      const { run } = coordinator
      const phases = run && [
        run.status,
        run.reason,
        run.closed,
        run.index.counts,
        [...run.nodes],
        [...run.workers.values()],
        world.timeline.nowMs,
      ]
      throw new BrokenInvariant(`the run ends in time: ${JSON.stringify(phases)}`)
    }
  }
  return simulation.judge()
}

function createSimulation(seed: number) {
  const random = createRandom(seed)
  const scenario = drawScenario(random)
  const timeline = createTimeline(1_000)
  const world: World = {
    timeline,
    random,
    scenario,
    link: createLink(timeline, random, scenario.faults),
    truth: createTruth(),
    tell: (input, durable) => coordinator.tell(input, durable),
    over: () => coordinator.journal.finished,
  }
  const nodes = Array.from({ length: scenario.nodes }, (_, i) => createFakeNode(world, `node-${i}`))
  const workers: FakeWorker[] = []
  const nodeOf = (of: Address) =>
    nodes[(of.episode * 7 + of.attempt) % nodes.length] as (typeof nodes)[number]
  const isAlive = (of: OfSandbox) => nodeOf(of).isAlive(of.sandbox)
  const grader = createFakeGrader(world, isAlive)
  const parts: Parts = { world, nodes, workers, nodeOf }

  const coordinator: FakeCoordinator = createFakeCoordinator(world, {
    perform: (effect) => perform(effect),
    check(run, step, input) {
      checkStep(run, scenario, countOwned(run, nodes))
      checkDecisions(run, step, input)
      checkGroups(run, step, input)
      checkHedges(run, step)
    },
    crash: () => crash(parts, coordinator),
    compare: checkReplay,
    started: () => {
      for (const node of nodes) tellCapacity(world, node)
      reconcile(parts, coordinator)
    },
  })

  function perform(effect: Effect): void {
    switch (effect.type) {
      case 'acquire_sandbox':
        world.link.send(() => nodeOf(effect).acquire(effect))
        break
      case 'release_sandbox':
        world.link.send(() => nodeOf(effect).release(effect))
        break
      case 'run_setup':
        planSetup(world, effect, isAlive)
        break
      case 'start_grade':
        grader.start(effect)
        break
      case 'cancel_grade':
        world.truth.revoked.add(effect.token)
        grader.cancel(effect.token)
        break
      case 'offer_lease':
      case 'cancel_worker':
        sendToWorker(parts, coordinator, effect)
        break
      case 'drop_worker':
        workers.find(({ name }) => name === effect.worker)?.disconnect()
        break
      default:
    }
  }

  function startWorker(): void {
    if (world.over()) return
    const name = `worker-${workers.length}`
    workers.push(createFakeWorker(world, name, { isAlive }))
  }

  coordinator.start()
  for (let i = 0; i < scenario.workers; i++) timeline.after(random.between(0, 5_000), startWorker)
  planTasks(world, coordinator)
  planUser(world, coordinator)
  planFaults(parts, coordinator, startWorker)
  planReconcile(parts, coordinator)
  if (scenario.policy.ahead !== null) planReader(world, coordinator)

  return {
    world,
    coordinator,
    isOver: () => coordinator.run !== null && world.over() && countHeld(nodes) === 0,
    judge: () => judge(seed, parts, coordinator),
  }
}

function judge(seed: number, parts: Parts, coordinator: FakeCoordinator): Simulated {
  const { world, nodes } = parts
  const { run, steps } = coordinator
  const { results, groups, log } = coordinator.journal
  const { scenario, truth, timeline } = world
  if (!run) throw new BrokenInvariant('the coordinator is up at the end')
  const { messageLost, messageLate, nodeDies, coordinatorDies, ...others } = scenario.faults
  const { crashesAtFlush, diskStalls } = others
  const wild = [messageLost, messageLate, nodeDies, coordinatorDies, crashesAtFlush, diskStalls]
  const calm = wild.every((probability) => probability === 0)
  checkEnd(run, results, { truth, held: countHeld(nodes), calm })
  checkHedged(
    scenario.policy,
    log,
    results.map(({ row }) => row),
  )
  checkEndedGroups(scenario.policy, { results, groups, log, cancelled: truth.cancelled })
  return {
    seed,
    episodes: results.length,
    steps,
    events: log.length,
    simulatedMs: timeline.nowMs,
    outcomes: { ...run.totals.outcomes },
    reasons: { ...run.totals.groups.reasons },
    hedges: { started: run.totals.hedges.started, won: run.totals.hedges.won },
  }
}

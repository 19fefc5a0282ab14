import { membersMax } from '../group/group.ts'
import { advance } from '../run/advance.ts'
import type { TaskInput } from '../run/input.ts'
import { isCurrent, ownsSandbox } from '../run/owner.ts'
import type { Run } from '../run/run.ts'
import type { FakeCoordinator } from './fake-coordinator.ts'
import type { FakeNode } from './fake-node.ts'
import type { FakeWorker } from './fake-worker.ts'
import { checkHeld, mustRefuse } from './invariants.ts'
import type { Scenario } from './scenario.ts'
import { type EffectOf, insist, type OfSandbox, type World } from './world.ts'

export type Address = { readonly episode: number; readonly attempt: number }

export interface Parts {
  readonly world: World
  readonly nodes: readonly FakeNode[]
  readonly workers: FakeWorker[]
  nodeOf(of: Address): FakeNode
}

/** The client: puts its tasks in batches, each until it is durable, some twice; then closes. */
export function planTasks(world: World, coordinator: FakeCoordinator): void {
  const { random, scenario, timeline } = world
  const tasks = Array.from({ length: scenario.tasks }, (_, i) => taskOf(world, scenario, i))
  const wanted = () => !world.truth.cancelled
  const put = (from: number) => {
    const to = from + 1 + random.below(8)
    const batch = tasks.slice(Math.max(0, from - random.below(3)), to)
    const next = () => {
      if (to < tasks.length) timeline.after(random.between(0, 10_000), () => put(to))
      else insist(world, { type: 'tasks_closed' }, wanted, () => {})
    }
    insist(world, { type: 'tasks_put', tasks: batch }, wanted, next)
    timeline.after(random.between(0, 5_000), () => {
      tryConflict(coordinator, batch[0])
      tryOverfull(coordinator, batch[0])
    })
  }
  put(0)
}

/** A user who pauses, always resumes in the end, and may cancel. */
export function planUser(world: World, coordinator: FakeCoordinator): void {
  const { random, scenario, timeline, truth } = world
  if (scenario.userPauses) {
    timeline.after(random.between(0, 120_000), () =>
      coordinator.tell({ type: 'pause', cause: 'the user pauses' }),
    )
  }
  if (scenario.userCancels) {
    timeline.after(random.spread(30_000, 1), () => {
      truth.cancelled = true
      insist(
        world,
        { type: 'cancel', cause: 'the user cancels' },
        () => true,
        () => {},
      )
    })
  }
  const resume = () => {
    if (world.over()) return
    if (coordinator.run?.status === 'paused') coordinator.tell({ type: 'resume' })
    timeline.after(60_000, resume)
  }
  timeline.after(60_000, resume)
  const train = (version: number) => {
    if (world.over()) return
    coordinator.tell({ type: 'policy_version_set', version })
    timeline.after(random.spread(20_000, 1), () => train(version + random.below(3)))
  }
  timeline.after(random.spread(20_000, 1), () => train(1))
}

/** A trainer that reads results at its own pace, and now and then stands still for long. */
export function planReader(world: World, coordinator: FakeCoordinator): void {
  const { random, timeline, scenario } = world
  const byGroups = scenario.policy.group !== null && random.chance(0.7)
  const read = () => {
    if (world.over()) return
    const { results, groups } = coordinator.journal
    if (byGroups) coordinator.tell({ type: 'groups_read', groups: groups.length })
    else coordinator.tell({ type: 'results_read', rows: results.length })
    timeline.after(random.spread(3_000, 1.5), read)
  }
  read()
}

/** Deaths and lost connections, at any moment, each followed by a return. */
export function planFaults(
  parts: Parts,
  coordinator: FakeCoordinator,
  startWorker: () => void,
): void {
  const { world, nodes, workers } = parts
  const { random, timeline, scenario } = world
  const { faults } = scenario
  const strike = () => {
    if (world.over()) return
    if (random.chance(faults.nodeDies / 4)) {
      const node = random.pick(nodes)
      if (node.up) node.die()
      tellCapacity(world, node)
    }
    const living = workers.filter((worker) => worker.alive)
    const victim = living.length > 0 ? random.pick(living) : undefined
    if (victim && random.chance(faults.workerDies / 4)) {
      killWorker(world, victim)
      timeline.after(random.between(500, 90_000), startWorker)
    } else if (victim && random.chance(faults.disconnects / 2)) {
      victim.disconnect()
      world.tell({ type: 'worker_detached', worker: victim.name })
    }
    if (random.chance(faults.coordinatorDies / 3)) {
      if (random.chance(0.3)) coordinator.tell({ type: 'give_up', cause: 'simulated stop' })
      crash(parts, coordinator)
    }
    timeline.after(random.spread(8_000, 1), strike)
  }
  timeline.after(random.spread(4_000, 1), strike)
}

/** The coordinator is killed, every connection with it, and comes back. */
export function crash(parts: Parts, coordinator: FakeCoordinator): void {
  const { timeline, random } = parts.world
  if (!coordinator.run) return
  coordinator.die()
  for (const worker of parts.workers) worker.disconnect()
  timeline.after(random.spread(2_000, 1.5), () => coordinator.start())
}

export function planReconcile(parts: Parts, coordinator: FakeCoordinator): void {
  const again = () => {
    reconcile(parts, coordinator)
    parts.world.timeline.after(60_000, again)
  }
  parts.world.timeline.after(60_000, again)
}

/** Brings nodes and run in line: sandboxes without an owner, owners without a sandbox. */
export function reconcile(parts: Parts, coordinator: FakeCoordinator): void {
  const { world, nodes, nodeOf } = parts
  const { run } = coordinator
  if (!run) return
  for (const node of nodes) {
    tellCapacity(world, node)
    if (!node.up) continue
    for (const held of node.held()) {
      if (ownsSandbox(run, held)) continue
      world.truth.reaped++
      node.release(held)
    }
    checkHeld(run, node.held())
  }
  for (const episode of [...run.index.slots]) {
    const address = { episode: episode.index, attempt: episode.attempt }
    const sandbox = episode.current?.sandbox ?? null
    const node = nodeOf(address)
    if (sandbox === null || episode.phase === 'releasing' || node.isAlive(sandbox)) continue
    const fate = node.fateOf(sandbox) ?? ({ cause: 'lost', evidence: 'its node is gone' } as const)
    world.tell({ type: 'sandbox_lost', ...address, sandbox, fate })
  }
}

export function planSetup(
  world: World,
  effect: EffectOf<'run_setup'>,
  isAlive: (of: OfSandbox) => boolean,
): void {
  const { random, timeline, scenario, link } = world
  const { episode, attempt, token } = effect
  const address = { episode, attempt, token }
  const failed = random.chance(scenario.faults.agentMisbehaves / 4)
  timeline.after(random.spread(300, 1), () => {
    if (!isAlive(effect)) return
    const fault = random.pick(['workload', 'platform'] as const)
    link.send(() =>
      failed
        ? world.tell({ type: 'setup_failed', ...address, fault, cause: 'simulated' })
        : world.tell({ type: 'setup_done', ...address }),
    )
  })
}

/** On the worker's connection of now, or never. */
export function sendToWorker(
  parts: Parts,
  coordinator: FakeCoordinator,
  effect: EffectOf<'offer_lease' | 'cancel_worker'>,
): void {
  const { world, workers } = parts
  const { timeline, random, scenario, truth } = world
  if (effect.type === 'cancel_worker') truth.revoked.add(effect.token)
  else if (random.chance(scenario.faults.messageLost / 2)) return
  const worker = workers.find(({ name }) => name === effect.worker)
  const connection = worker?.connection ?? null
  if (!worker || connection === null) return
  const { run } = coordinator
  if (effect.type === 'offer_lease' && !(run && isCurrent(run, effect))) return
  timeline.after(random.between(0.1, 5), () => {
    if (worker.connection !== connection) return
    if (effect.type === 'offer_lease') worker.offer(effect)
    else worker.cancel(effect.token, effect.cause)
  })
}

export function tellCapacity(world: World, node: FakeNode): void {
  if (!world.scenario.capacity) return
  const sandboxes = node.up ? 3 : 0
  world.tell({ type: 'node_capacity', node: node.name, sandboxes, creating: node.up ? 2 : 0 })
}

export function countHeld(nodes: readonly FakeNode[]): number {
  return nodes.reduce((sum, node) => sum + node.held().length, 0)
}

export function countOwned(run: Run, nodes: readonly FakeNode[]): number {
  let owned = 0
  for (const node of nodes) {
    for (const held of node.held()) if (ownsSandbox(run, held)) owned++
  }
  return owned
}

function killWorker(world: World, victim: FakeWorker): void {
  victim.die()
  if (world.random.chance(0.6)) {
    const died = world.random.chance(0.8)
    const cause = died ? 'simulated death' : 'simulated good-bye'
    world.tell({ type: 'worker_lost', worker: victim.name, cause, died })
  } else {
    world.tell({ type: 'worker_detached', worker: victim.name })
  }
}

/** The same key with another content, put beside a good task: refused as a whole. */
function tryConflict(coordinator: FakeCoordinator, task: TaskInput | undefined): void {
  const { run } = coordinator
  if (!run || !task || run.closed || run.keys.find(task.key) === undefined) return
  const tasks = [
    { ...task, key: 'another' },
    { ...task, digest: 'other' },
  ]
  mustRefuse(run, 'task_conflict', () =>
    advance(run, { type: 'tasks_put', nowMs: run.nowMs, tasks }),
  )
}

/** One more task for a group that has all of its, be it open or over. */
function tryOverfull(coordinator: FakeCoordinator, task: TaskInput | undefined): void {
  const { run, journal } = coordinator
  const rule = run?.policy.group
  if (!run || !task || run.closed || rule?.by !== 'name') return
  const full = (members: number) => members === membersMax(rule)
  const groups = [
    ...[...run.groups.values()].filter(({ members }) => full(members)).map(({ name }) => name),
    ...journal.groups.filter(({ group }) => full(group.members)).map(({ group }) => group.group),
  ]
  for (const group of groups) {
    const tasks = [{ ...task, key: 'one more', group }]
    mustRefuse(run, 'task_conflict', () =>
      advance(run, { type: 'tasks_put', nowMs: run.nowMs, tasks }),
    )
  }
}

function taskOf(world: World, scenario: Scenario, i: number): TaskInput {
  const { policy, groupsInTurn, tasks } = scenario
  const members = policy.group ? membersMax(policy.group) : 3
  const group = groupsInTurn ? i % Math.ceil(tasks / members) : Math.floor(i / members)
  return {
    key: `task-${i}`,
    digest: `digest-${i}`,
    taskJson: `{"i":${i}}`,
    taskBlob: null,
    seed: i,
    ...(policy.group?.by === 'prompt' ? {} : { group: `group-${group}` }),
    ...(i % 3 === 0 ? { expectedMs: world.random.below(1_000) } : {}),
    ...(i % 5 === 0
      ? { own: { from: `own-${i}`, timeoutMs: { agent: policy.timeoutMs.agent * 2 }, more: '{}' } }
      : {}),
  }
}

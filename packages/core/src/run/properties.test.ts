import { SandlotError } from '@sandlot/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { scriptedRun, textOf } from '../simulation/scripted-run.ts'
import type { InputBody } from './input.ts'
import { loadRun, saveRun } from './saved.ts'

const small = fc.integer({ min: 0, max: 3 })
const address = { episode: small, attempt: fc.integer({ min: 1, max: 3 }) }
const fenced = { ...address, token: fc.integer({ min: 1, max: 12 }) }
const sandbox = fc.constantFrom('sb_a', 'sb_b')
const fate = fc.record({
  cause: fc.constantFrom('oom_limit', 'oom_host', 'lost', 'stopped', 'lifetime'),
  evidence: fc.string(),
})
const reward = fc.constantFrom(0, 1, Number.NaN, 'x', undefined)
const report = fc.oneof(
  fc.record({ kind: fc.constant('returned'), reward, limit: fc.constantFrom('turns', undefined) }),
  fc.record({
    kind: fc.constantFrom('threw', 'model_failed', 'invalid', 'aborted'),
    cause: fc.constant(['x']),
  }),
)
const worker = fc.constantFrom('w', 'v')

/** Anything at all, to anybody, at any time: mostly nonsense. */
const input = fc.oneof(
  of('tasks_put', { tasks: fc.array(task(), { maxLength: 4 }) }),
  of('sandbox_ready', { ...address, sandbox, node: fc.constant('n'), createMs: fc.double() }),
  of('sandbox_failed', {
    ...address,
    fault: fc.constantFrom('caller', 'platform'),
    cause: fc.string(),
  }),
  of('sandbox_lost', { ...address, sandbox, fate }),
  of('torn_down', {
    ...address,
    sandbox: fc.option(sandbox),
    fate: fc.option(fate, { nil: undefined }),
  }),
  of('setup_done', fenced),
  of('setup_failed', {
    ...fenced,
    fault: fc.constantFrom('workload', 'platform'),
    cause: fc.string(),
  }),
  of('worker_attached', { worker, slots: small, held: fc.array(fc.integer({ max: 12 })) }),
  of('worker_detached', { worker }),
  of('worker_renewed', { worker, lagMs: fc.double() }),
  of('worker_lost', { worker, cause: fc.string(), died: fc.boolean() }),
  of('lease_taken', fenced),
  of('model_started', fenced),
  of('model_ended', fenced),
  of('reported', { ...fenced, report, agentMs: fc.double(), modelMs: fc.double() }),
  of('graded', {
    ...fenced,
    result: fc.record({ kind: fc.constantFrom('verdict', 'failed'), reward, cause: fc.string() }),
  }),
  of('results_recorded', { through: small }),
  of('results_read', { rows: small }),
  of('groups_read', { groups: small }),
  of('tick', {}),
  of('give_up', { cause: fc.string() }),
  of('pause', { cause: fc.string() }),
  of('resume', {}),
  of('node_capacity', { node: fc.constant('n'), sandboxes: small, creating: small }),
  of('recovered', { recordedThrough: small }),
  of('policy_version_set', { version: small }),
)
const rarely = fc.oneof(
  { arbitrary: input, weight: 40 },
  { arbitrary: of('tasks_closed', {}), weight: 1 },
  { arbitrary: of('cancel', { cause: fc.string() }), weight: 1 },
)
const spec = fc.record({
  concurrency: fc.integer({ min: 1, max: 3 }),
  ahead: fc.constantFrom(undefined, 1),
  setup: fc.constantFrom(undefined, ['true']),
  grade: fc.constantFrom(
    undefined,
    { kind: 'worker' as const, in: 'same' as const },
    { kind: 'command' as const, command: ['true'], in: 'world' as const },
  ),
  group: fc.option(
    fc.record({
      by: fc.constantFrom('prompt', 'name'),
      size: fc.constantFrom(1, 3),
      need: fc.constant(1),
      extra: fc.constantFrom(0, 1),
      cut: fc.constantFrom(null, { after: 5_000 }),
      maxLag: fc.constantFrom(null, 1),
    }),
    { nil: undefined },
  ),
  policy: fc.constantFrom(undefined, { episode_error: 'drop-group' }),
  hedge: fc.constantFrom(
    undefined,
    { after: 500, phases: ['create', 'setup'] },
    { after: 500, phases: ['agent'] },
  ),
})
const story = fc.array(fc.tuple(fc.integer({ min: -1_000, max: 40_000 }), rarely), {
  minLength: 20,
  maxLength: 120,
})

test('whatever comes in what order: no fault of core, and the log gives the state', () => {
  fc.assert(
    fc.property(spec, story, (options, inputs) => {
      const script = scriptedRun(options as never)
      putThree(script, options)
      for (const [ms, input] of inputs) {
        script.nowMs += ms
        tell(script, input)
        const { slots } = script.run.index
        expect(slots.size).toBeLessThanOrEqual(options.concurrency)
      }
      const text = textOf(script.run)
      expect(textOf(script.replayed())).toBe(text)
      expect(textOf(loadRun(JSON.parse(JSON.stringify(saveRun(script.run)))))).toBe(text)
      const keys = script.rows.map(({ key }) => key)
      expect(new Set(keys).size).toBe(keys.length)
      for (const row of script.rows) expect(row.valid || row.reward === null).toBe(true)
      const groups = script.groups.map(({ group }) => group)
      expect(new Set(groups).size).toBe(groups.length)
    }),
    { numRuns: 300 },
  )
})

test('the same inputs give the same decisions', () => {
  fc.assert(
    fc.property(spec, story, (options, inputs) => {
      const decided = [0, 1].map(() => {
        const script = scriptedRun(options as never)
        putThree(script, options)
        for (const [ms, input] of inputs) {
          script.nowMs += ms
          tell(script, input)
        }
        return script.events
      })
      expect(decided[0]).toEqual(decided[1])
    }),
    { numRuns: 50 },
  )
})

function putThree(
  script: ReturnType<typeof scriptedRun>,
  { group }: { readonly group?: { readonly by: string } | undefined },
): void {
  for (const name of ['x', 'y', 'z']) script.put(1, group?.by === 'name' ? { group: name } : {})
}

function tell(script: ReturnType<typeof scriptedRun>, input: InputBody): void {
  const before = script.events.length
  try {
    script.tell(input)
  } catch (error) {
    if (!(error instanceof SandlotError)) throw error
    expect(script.events.length).toBe(before)
  }
}

function of(type: InputBody['type'], fields: Record<string, fc.Arbitrary<unknown>>) {
  return fc.record({
    type: fc.constant(type),
    ...fields,
  }) as fc.Arbitrary<unknown> as fc.Arbitrary<InputBody>
}

function task() {
  return fc.record({
    key: fc.constantFrom('a', 'b', 'q', 'r'),
    digest: fc.constantFrom('of a', 'of b', 'other'),
    taskJson: fc.constant('{}'),
    taskBlob: fc.constant(null),
    seed: small,
    group: fc.constantFrom(undefined, undefined, 'x', 'y'),
  })
}

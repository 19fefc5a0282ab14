import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Log } from '../log.ts'
import { bytes, expectCode, type MakeEngine, text } from './engine-under-test.ts'
import { LogModel } from './log-model.ts'

type Command =
  | {
      type: 'append'
      texts: string[]
      keys: number[] | undefined
      expect: 'head' | 'wrong' | undefined
    }
  | { type: 'read'; after: number; limit: number }
  | { type: 'trim'; share: number }
  | { type: 'checkpoint'; share: number }
  | { type: 'delete' }
  | { type: 'crash' }

const append = fc
  .record({
    texts: fc.array(fc.string({ maxLength: 8 }), { minLength: 1, maxLength: 4 }),
    withKeys: fc.boolean(),
    keys: fc.array(fc.nat(12), { minLength: 4, maxLength: 4 }),
    expect: fc.constantFrom('head' as const, 'wrong' as const, undefined),
  })
  .map(
    ({ texts, withKeys, keys, expect }): Command => ({
      type: 'append',
      texts,
      keys: withKeys ? keys.slice(0, texts.length) : undefined,
      expect,
    }),
  )

const share = fc.integer({ min: 1, max: 100 })
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 40, arbitrary: append },
  {
    weight: 20,
    arbitrary: fc.record({
      type: fc.constant('read' as const),
      after: fc.integer({ min: 0, max: 100 }),
      limit: fc.integer({ min: 1, max: 6 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ type: fc.constant('trim' as const), share }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constant('checkpoint' as const), share }) },
  { weight: 2, arbitrary: fc.constant<Command>({ type: 'delete' }) },
  { weight: 1, arbitrary: fc.constant<Command>({ type: 'crash' }) },
)

/** Any course of calls does what the model says. */
export function describeLogModel(makeEngine: MakeEngine): void {
  test('log: behaves like its model, whatever the course of calls', async () => {
    await using subject = await makeEngine()
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 40 }), async (commands) => {
        const stream = `run/${run++}`
        let model = new LogModel()
        for (const step of commands) {
          if (step.type === 'crash') await subject.crash()
          else if (step.type === 'delete') {
            expect(await subject.engine.log.delete(stream)).toBe(model.head > 0)
            model = new LogModel()
          } else await check(subject.engine.log, stream, model, step)
        }
      }),
      { numRuns: 60 },
    )
  })
}

type Checked = Exclude<Command, { type: 'crash' | 'delete' }>

async function check(log: Log, stream: string, model: LogModel, step: Checked): Promise<void> {
  const at = 'share' in step ? Math.ceil((model.head * step.share) / 100) : 0
  if (step.type === 'append') return checkAppend(log, stream, model, step)
  if (step.type === 'read') return checkRead(log, stream, model, step)
  if (at === 0) return
  const position = model.positions.get(at) ?? ''
  if (step.type === 'trim') {
    await log.trim(stream, position)
    model.trim(at)
    return
  }
  const call = log.checkpoint(stream, position, bytes(`state ${at}`))
  if (model.checkpoint && model.checkpoint.position > at) await expectCode(call, 'log_conflict')
  else {
    await call
    model.checkpoint = { position: at, state: `state ${at}` }
  }
  const found = await log.latestCheckpoint(stream)
  expect(found && text(found.state)).toBe(model.checkpoint?.state)
  expect(found?.position).toBe(model.positions.get(model.checkpoint?.position ?? 0))
}

async function checkAppend(
  log: Log,
  stream: string,
  model: LogModel,
  step: Extract<Command, { type: 'append' }>,
): Promise<void> {
  const head = model.positions.get(model.head) ?? 'start'
  const wrong = model.head === 0 ? '0000000000000001' : 'start'
  const options = {
    ...(step.keys && { dedup: step.keys.map((n) => `key ${n}`) }),
    ...(step.expect && { expect: step.expect === 'head' ? head : wrong }),
  }
  const before = model.positions.get(model.head)
  const must = model.append(step.texts, options)
  const call = log.append(stream, step.texts.map(bytes), options)
  if (must === undefined) {
    await expectCode(call, 'log_conflict')
    return
  }
  const appended = await call
  const fresh = await log.read(stream, before === undefined ? {} : { after: before })
  expect(fresh).toHaveLength(must.written.length)
  model.learn(
    must.written,
    fresh.map((record) => record.position),
  )
  expect(appended).toEqual(model.appended(must.duplicates))
  expect(await log.head(stream)).toBe(model.positions.get(model.head))
}

async function checkRead(
  log: Log,
  stream: string,
  model: LogModel,
  step: Extract<Command, { type: 'read' }>,
): Promise<void> {
  const at = Math.floor((model.head * step.after) / 100)
  const after = model.positions.get(at)
  const call = log.read(stream, { limit: step.limit, ...(after !== undefined && { after }) })
  if (after !== undefined && at < model.trimmed) {
    await expectCode(call, 'log_trimmed')
    return
  }
  const must = model.records.filter((record) => record.position > at).slice(0, step.limit)
  const found = await call
  expect(found.map((record) => text(record.bytes))).toEqual(must.map((record) => record.text))
  expect(found.map((record) => record.position)).toEqual(
    must.map((record) => model.positions.get(record.position)),
  )
}

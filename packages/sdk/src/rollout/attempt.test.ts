import { type Lease, SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { ClientContext } from '../connection/context.ts'
import { runAttempt } from './attempt.ts'

const lease: Lease = {
  ...{ lease: 'ls_1', token: 1, phase: 'grade', episode: 'ep_1', key: 'a', group: 'a' },
  ...{ member: 0, index: 0, attempt: 1, seed: 1, policyVersion: 0, sandbox: 'sb_1' },
  ...{ world: 'grade', taskJson: '{}', taskBlob: null, dataJson: null, dataBlob: null },
  ...{ timeoutMs: 1_000, modelTimeoutMs: 1_000 },
}

/** How an attempt ends in which the user's function throws this. */
async function endOf(phase: Lease['phase'], thrown: unknown) {
  const fail = async () => {
    throw thrown
  }
  const { report, fault } = await runAttempt(
    {} as ClientContext,
    { ...lease, phase },
    { episode: fail, grader: fail },
    {
      signal: new AbortController().signal,
      lag: { total: () => 0, stop() {} },
      hooks: { modelStarted() {}, modelEnded() {} },
    },
  )
  return { kind: report.kind, fault }
}

test.each([
  new SandlotError('connection_lost', 'gone'),
  new SandlotError('sandbox_lost', 'gone'),
  new SandlotError('draining', 'it stops'),
  new Error('no answer', { cause: new SandlotError('internal', 'broken') }),
])('a grader that threw %s has thrown by no doing of its own', async (thrown) => {
  expect(await endOf('grade', thrown)).toEqual({ kind: 'threw', fault: 'platform' })
})

test.each([
  new Error('no'),
  new SandlotError('file_not_found', 'there is none'),
  new SandlotError('sandbox_gone', 'it went over its memory'),
  new Proxy(new Error('no'), {
    getPrototypeOf() {
      throw new Error('it may not be looked at')
    },
  }),
])('%# is a grader’s own failure', async (thrown) => {
  expect(await endOf('grade', thrown)).toEqual({ kind: 'threw', fault: undefined })
})

test('an episode that threw by the platform’s fault gives its lease back', async () => {
  const lost = new SandlotError('connection_lost', 'gone')
  expect(await endOf('agent', lost)).toEqual({ kind: 'aborted', fault: undefined })
  const gone = new SandlotError('sandbox_lost', 'gone')
  expect(await endOf('agent', gone)).toEqual({ kind: 'threw', fault: undefined })
})

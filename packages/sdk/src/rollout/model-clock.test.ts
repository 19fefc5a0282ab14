import { expect, test } from 'vitest'
import { ModelClock } from './model-clock.ts'

const hooks = { modelStarted() {}, modelEnded() {} }
const { signal } = new AbortController()

test('a call that fails is told by what is at the bottom of it', async () => {
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:8000')
  const spoilt = Object.defineProperty(new Error('e'), 'cause', {
    get() {
      throw new Error('no')
    },
  })
  for (const [thrown, message] of [
    [new TypeError('fetch failed', { cause: refused }), `failed: Error: ${refused.message}`],
    ['no tokens left', 'failed: no tokens left'],
    [spoilt, 'failed: something was thrown'],
  ] as const) {
    const clock = new ModelClock(hooks)
    const call = clock.wrap(60_000, signal)(() => Promise.reject(thrown))
    await expect(call).rejects.toMatchObject({ name: 'ModelError', cause: thrown })
    expect(clock.failure?.message).toContain(message)
  }
})

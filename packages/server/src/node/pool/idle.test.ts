import { cpus } from 'node:os'
import { expect, test } from 'vitest'
import { until } from '../../testing/until.ts'
import { watchIdleProcessors } from './idle.ts'

test('processors that work are not idle', async () => {
  const idle = watchIdleProcessors()
  expect(idle()).toBe(cpus().length)
  // This process keeps one of them busy in between.
  await until(() => {
    const endMs = performance.now() + 200
    while (performance.now() < endMs);
    const left = idle()
    return left >= 0 && left < cpus().length - 0.5
  })
})

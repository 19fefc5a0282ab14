import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { locked } from './lock.ts'

test('the second waits for the first, and says so once', async () => {
  await using directory = await temporaryDirectory()
  const lock = { directory: directory.path, name: 'thing' }
  const events: string[] = []
  const gate = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const first = locked(lock, async () => {
    events.push('first begins')
    held.resolve()
    await gate.promise
    events.push('first ends')
  })
  await held.promise
  const waits = Promise.withResolvers<void>()
  const onWait = () => {
    events.push('second waits')
    waits.resolve()
  }
  const second = locked({ ...lock, onWait }, async () => void events.push('second'))
  await waits.promise
  gate.resolve()
  await Promise.all([first, second])
  expect(events).toEqual(['first begins', 'second waits', 'first ends', 'second'])
})

test('locks of other names are free', async () => {
  await using directory = await temporaryDirectory()
  await locked({ directory: directory.path, name: 'one' }, async () => {
    await locked({ directory: directory.path, name: 'other' }, async () => undefined)
  })
})

test('work that fails gives the lock back', async () => {
  await using directory = await temporaryDirectory()
  const lock = { directory: directory.path, name: 'thing' }
  const failing = locked(lock, async () => {
    throw new Error('no')
  })
  await expect(failing).rejects.toThrow('no')
  expect(await locked(lock, async () => 'free')).toBe('free')
})

test('waiting can be given up', async () => {
  await using directory = await temporaryDirectory()
  const lock = { directory: directory.path, name: 'thing' }
  const gate = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const first = locked(lock, async () => {
    held.resolve()
    await gate.promise
  })
  await held.promise
  const controller = new AbortController()
  const onWait = () => controller.abort(new Error('enough'))
  const second = locked({ ...lock, onWait, signal: controller.signal }, async () => undefined)
  await expect(second).rejects.toThrow('enough')
  gate.resolve()
  await first
})

test('a holder that is killed holds nothing', async () => {
  await using directory = await temporaryDirectory()
  const lock = { directory: directory.path, name: 'thing' }
  const script = `
    import { locked } from ${JSON.stringify(new URL('./lock.ts', import.meta.url).href)}
    const hold = async () => { process.stdout.write('held\\n'); await new Promise((resolve) => setTimeout(resolve, 1e8)) }
    await locked(${JSON.stringify(lock)}, hold)
  `
  const argv = ['--input-type=module', '--disable-warning=ExperimentalWarning', '-e', script]
  const holder = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(createInterface(holder.stdout), 'line')
  const onWait = () => void holder.kill('SIGKILL')
  expect(await locked({ ...lock, onWait }, async () => 'free')).toBe('free')
})

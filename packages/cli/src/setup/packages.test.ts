import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { Failure } from '../failure.ts'
import { type FakeMachine, fakeMachine } from '../testing/fake-machine.ts'
import { ensurePackages, type Need } from './packages.ts'

const NEEDS: readonly Need[] = [
  { program: 'tool', package: 'tools' },
  { program: 'other-tool', package: 'tools' },
  { program: 'thing', package: 'things' },
]

function ensure(machine: FakeMachine, mayInstall = true): Promise<void> {
  return ensurePackages({ ...machine.step, needs: NEEDS, place: machine.place, mayInstall })
}

/** What brings the programs into the directory of the script itself. */
const INSTALLS = 'for name in tool other-tool thing; do cp /bin/true "$(dirname "$0")/$name"; done'

test('nothing is done when all is there', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  for (const { program } of NEEDS) await machine.program(program, '')
  await ensure(machine)
  expect(machine.reported).toEqual([])
  expect(await machine.calls()).toEqual([])
})

test('what is missing is installed, each package once', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program('apt-get', INSTALLS)
  await ensure(machine)
  expect(machine.reported).toEqual(['installing Debian packages: tools, things'])
  expect(await machine.calls()).toEqual([
    'apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends tools things',
  ])
})

test('the package lists of a fresh machine are fetched first', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program(
    'apt-get',
    `case "$*" in
       update) touch "$0.lists" ;;
       *) [ -e "$0.lists" ] || exit 100; ${INSTALLS} ;;
     esac`,
  )
  await ensure(machine)
  expect((await machine.calls()).map((line) => line.split(' ')[1])).toEqual(['-o', 'update', '-o'])
})

test('two at once install once', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program('apt-get', `sleep 0.2; ${INSTALLS}`)
  await Promise.all([ensure(machine), ensure(machine)])
  expect(await machine.calls()).toHaveLength(1)
})

test('an installation that fails is told with the command to run', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program('apt-get', 'echo "E: Unable to locate package things"; exit 100')
  await expect(ensure(machine)).rejects.toMatchObject({
    name: 'Failure',
    message: expect.stringContaining('E: Unable to locate package things'),
    hint: 'run: apt-get update && apt-get install -y tools things',
  })
})

test('an installation that brings nothing is a failure too', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program('apt-get', 'exit 0')
  await expect(ensure(machine)).rejects.toThrow('could not install tools, things')
})

test('who may not install is told what to install', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program('apt-get', INSTALLS)
  const failure = await ensure(machine, false).catch((error: Failure) => error)
  expect(failure).toBeInstanceOf(Failure)
  expect(failure).toMatchObject({
    message: 'missing: tools, things',
    hint: expect.stringContaining('apt-get install -y tools things'),
  })
  expect(await machine.calls()).toEqual([])
})

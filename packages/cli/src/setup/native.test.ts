import { access, mkdir, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { type FakeMachine, fakeMachine } from '../testing/fake-machine.ts'
import { ensureNative, findNative, nativeKey } from './native.ts'

/** Puts two binaries where cargo does. */
const BUILDS = `
  release="$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/release"
  mkdir -p "$release"
  echo agent >"$release/sandlot-agent"; echo helper >"$release/sandlot-helper"
  chmod +x "$release"/*
  echo "   Compiling sandlot-agent v0.0.0"`

async function withSources(directory: string): Promise<FakeMachine> {
  const machine = await fakeMachine(directory)
  await write(machine, 'Cargo.toml', '[workspace]')
  await write(machine, 'agent/src/main.rs', 'fn main() {}')
  return machine
}

async function write(machine: FakeMachine, path: string, text: string): Promise<void> {
  const whole = join(machine.place.nativeDirectory, path)
  await mkdir(dirname(whole), { recursive: true })
  await writeFile(whole, text)
}

function ensure({ step, place }: FakeMachine) {
  return ensureNative({ ...step, place })
}

test('the key follows what the programs are built from, and nothing else', async () => {
  await using directory = await temporaryDirectory()
  const machine = await withSources(directory.path)
  const { nativeDirectory } = machine.place
  const key = await nativeKey(nativeDirectory)
  expect(key).toMatch(/^[0-9a-f]{16}$/)
  await write(machine, 'target/release/build/out.rs', 'built')
  await write(machine, 'agent/tests/all.rs', 'test')
  await write(machine, 'agent/examples/drive/main.rs', 'example')
  await write(machine, 'agent/README.md', 'text')
  expect(await nativeKey(nativeDirectory)).toBe(key)
  await write(machine, 'agent/src/main.rs', 'fn main() { }')
  const edited = await nativeKey(nativeDirectory)
  await write(machine, '.cargo/config.toml', '[build]')
  const configured = await nativeKey(nativeDirectory)
  expect(new Set([key, edited, configured]).size).toBe(3)
})

test('cargo builds once; after that nothing is started', async () => {
  await using directory = await temporaryDirectory()
  const machine = await withSources(directory.path)
  await machine.program('cargo', BUILDS)
  expect(await findNative(machine.place)).toBeUndefined()
  const { agent, helper } = await ensure(machine)
  expect(await readFile(agent, 'utf8')).toBe('agent\n')
  expect(await readFile(helper, 'utf8')).toBe('helper\n')
  expect(machine.reported).toEqual([
    'building the guest agent and the host helper (cargo)',
    'Compiling sandlot-agent v0.0.0',
  ])
  await rm(join(machine.place.nativeDirectory, 'target'), { recursive: true })
  expect(await ensure(machine)).toEqual({ agent, helper })
  expect(await findNative(machine.place)).toEqual({ agent, helper })
  expect(await machine.calls()).toEqual([
    'cargo build --release --locked --bins --target x86_64-unknown-linux-gnu',
  ])
})

test('cargo keeps to the cache, and to the user’s own configuration', async () => {
  await using directory = await temporaryDirectory()
  const machine = await withSources(directory.path)
  const { cargoConfig = '', cargoHome } = machine.place
  await mkdir(dirname(cargoConfig), { recursive: true })
  await writeFile(cargoConfig, '[source]')
  await machine.program('cargo', `[ "$CARGO_HOME" = '${cargoHome}' ] || exit 1\n${BUILDS}`)
  await ensure(machine)
  expect((await machine.calls())[0]).toMatch(`cargo --config ${cargoConfig} build --release`)
})

test('two at once build once', async () => {
  await using directory = await temporaryDirectory()
  const machine = await withSources(directory.path)
  await machine.program('cargo', `${machine.untilReported('waiting')}; ${BUILDS}`)
  const [one, other] = await Promise.all([ensure(machine), ensure(machine)])
  expect(one).toEqual(other)
  expect(await machine.calls()).toHaveLength(1)
  expect(machine.reported).toContain(
    'waiting for another sandlot, which builds the native programs',
  )
})

test('what was edited while it was built is built again', async () => {
  await using directory = await temporaryDirectory()
  const machine = await withSources(directory.path)
  await machine.program(
    'cargo',
    `${BUILDS}\n[ -e edited ] || echo '// edited' >>agent/src/main.rs\ntouch edited`,
  )
  const { agent } = await ensure(machine)
  expect(await machine.calls()).toHaveLength(2)
  expect(agent).toContain(await nativeKey(machine.place.nativeDirectory))
})

test('the builds of others are kept, but not for ever', async () => {
  await using directory = await temporaryDirectory()
  const machine = await withSources(directory.path)
  await machine.program('cargo', BUILDS)
  const { cacheDirectory } = machine.place
  for (let age = 1; age <= 6; age++) {
    const old = join(cacheDirectory, `native-${String(age).repeat(16)}`)
    await mkdir(old, { recursive: true })
    const then = new Date(Date.now() - age * 60_000)
    await utimes(old, then, then)
  }
  await mkdir(join(cacheDirectory, `native-${'a'.repeat(16)}.part.77`))
  const { agent } = await ensure(machine)
  const left = (await readdir(cacheDirectory)).filter((name) => name !== 'native.lock').sort()
  const own = agent.split('/').at(-2)
  const kept = ['1', '2', '3', '4'].map((age) => `native-${age.repeat(16)}`)
  expect(left).toEqual([...kept, own].sort())
})

test('a build that fails shows its last lines, and leaves nothing', async () => {
  await using directory = await temporaryDirectory()
  const machine = await withSources(directory.path)
  await machine.program('cargo', 'echo "error[E0308]: mismatched types"; exit 101')
  await expect(ensure(machine)).rejects.toMatchObject({
    name: 'Failure',
    message: expect.stringContaining('error[E0308]'),
    hint: expect.stringContaining('cargo build'),
  })
  expect(await readdir(machine.place.cacheDirectory)).toEqual(['native.lock'])
})

test.each([
  ["error[E0463]: can't find crate for `core`", 'run: rustup target add x86_64-unknown-linux-gnu'],
  ['error: rustup could not choose a version of cargo to run', 'run: rustup default stable'],
])('what is missing of Rust is told with the command that adds it: %s', async (said, hint) => {
  await using directory = await temporaryDirectory()
  const machine = await withSources(directory.path)
  await machine.program('cargo', `cat <<'end'\n${said}\nend\nexit 101`)
  await expect(ensure(machine)).rejects.toMatchObject({ hint })
})

test('without cargo it says how to get it', async () => {
  await using directory = await temporaryDirectory()
  const machine = await withSources(directory.path)
  await expect(ensure(machine)).rejects.toMatchObject({
    hint: expect.stringContaining('rustup.rs'),
  })
})

test('an interruption ends cargo', async () => {
  await using directory = await temporaryDirectory()
  const machine = await withSources(directory.path)
  await machine.program('cargo', 'echo "   Compiling for ever"; exec sleep 1000')
  const controller = new AbortController()
  const report = (line: string) => line.startsWith('Compiling') && controller.abort(new Error('no'))
  const building = ensureNative({ report, signal: controller.signal, place: machine.place })
  await expect(building).rejects.toThrow('no')
})

test('given programs are taken as they are', async () => {
  await using directory = await temporaryDirectory()
  const nativeGiven = { agent: '/given/agent', helper: '/given/helper' }
  const machine = await fakeMachine(directory.path, { nativeGiven })
  expect(await ensure(machine)).toEqual(nativeGiven)
  await expect(access(machine.place.cacheDirectory)).rejects.toThrow()
})

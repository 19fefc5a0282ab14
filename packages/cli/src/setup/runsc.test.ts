import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { type FakeMachine, fakeMachine, runscScript } from '../testing/fake-machine.ts'
import { serveWeb } from '../testing/web.ts'
import { ensureRunsc, findRunsc } from './runsc.ts'

const GO = 'go-20260905'
const RELEASE = '20260921.0'
const BUNDLE = `/${RELEASE}/x86_64/gvisor.tar.bz2`

const works = async () => undefined

function ensure({ step, place }: FakeMachine, tryOut: (path: string) => Promise<void> = works) {
  return ensureRunsc({ ...step, place, tryOut })
}

/** A `go` that installs a runsc of this version where GOBIN says, and leaves what a real one leaves. */
function goScript(version: string): string {
  return `
    mkdir -p "$GOMODCACHE" "$GOCACHE"
    printf '%s\\n' '#!/bin/sh' 'echo "runsc version ${version}"' >"$GOBIN/runsc"
    chmod +x "$GOBIN/runsc"`
}

/** A release bundle with a runsc of this version. */
async function bundle(directory: string, version: string): Promise<Buffer> {
  const from = join(directory, 'bundle')
  await mkdir(join(from, 'gvisor-bin'), { recursive: true })
  await writeFile(join(from, 'gvisor-bin/prewarmer'), 'prewarmer')
  await writeFile(join(from, 'runsc'), `#!/bin/sh\n${runscScript(version)}\n`)
  await chmod(join(from, 'runsc'), 0o755)
  const path = join(directory, 'gvisor.tar.bz2')
  await promisify(execFile)('tar', ['-cjf', path, '-C', from, 'runsc', 'gvisor-bin'])
  return await readFile(path)
}

function sumOf(archive: Uint8Array): string {
  return `${createHash('sha512').update(archive).digest('hex')}  gvisor.tar.bz2\n`
}

test('a given one is taken, whatever else there is', async () => {
  await using directory = await temporaryDirectory()
  const other = await fakeMachine(directory.path)
  const runscGiven = await other.program('given', runscScript(GO))
  await other.program('runsc', runscScript('release-20260914.0'))
  const machine = { ...other, place: { ...other.place, runscGiven } }
  expect(await ensure(machine)).toBe(runscGiven)
  expect(await findRunsc(machine.place)).toBe(runscGiven)
})

test.each([
  ['an older one', runscScript('release-20210101.0'), 'version release-20210101.0'],
  ['one that says something else', 'echo hello', 'no runsc that runs'],
  ['one that fails', 'exit 1', 'no runsc that runs'],
])('%s that was given is refused with the versions that would do', async (_, script, why) => {
  await using directory = await temporaryDirectory()
  const other = await fakeMachine(directory.path)
  const runscGiven = await other.program('given', script)
  const machine = { ...other, place: { ...other.place, runscGiven } }
  await expect(ensure(machine)).rejects.toMatchObject({
    name: 'Failure',
    message: `SANDLOT_RUNSC=${runscGiven} is ${why}`,
    hint: expect.stringContaining(GO),
  })
})

test('one that was brought before comes before PATH, and is not even started', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program('runsc', runscScript(GO))
  const brought = join(machine.place.cacheDirectory, `runsc-${GO}`)
  await mkdir(brought, { recursive: true })
  await writeFile(join(brought, 'runsc'), 'no program', { mode: 0o755 })
  expect(await ensure(machine)).toBe(join(brought, 'runsc'))
  expect(await machine.calls()).toEqual([])
})

test('one on PATH of a listed version is taken when it starts a sandbox', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  const path = await machine.program('runsc', runscScript('release-20260914.0'))
  const tried: string[] = []
  expect(await ensure(machine, async (each) => void tried.push(each))).toBe(path)
  expect(tried).toEqual([path])
  expect(await findRunsc(machine.place)).toBe(path)
})

test('one on PATH that starts no sandbox is passed over, and it is said why', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  const path = await machine.program('runsc', runscScript('release-20260914.0'))
  await machine.program('go', goScript(GO))
  const fails = async () => {
    throw new Error('no hot mount')
  }
  const brought = await ensure(machine, fails)
  expect(brought).toBe(join(machine.place.cacheDirectory, `runsc-${GO}/runsc`))
  expect(machine.reported[0]).toBe(
    `${path} starts no sandbox (no hot mount), so another is brought`,
  )
})

test('one on PATH of another version is not tried', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program('runsc', runscScript('release-20210101.0'))
  await machine.program('go', goScript(GO))
  const brought = await ensure(machine, async () => expect.unreachable())
  expect(brought).toContain(machine.place.cacheDirectory)
})

test('the release is downloaded, checked and unpacked once', async () => {
  await using directory = await temporaryDirectory()
  const archive = await bundle(directory.path, `release-${RELEASE}`)
  await using web = await serveWeb({ [BUNDLE]: archive, [`${BUNDLE}.sha512`]: sumOf(archive) })
  const machine = await fakeMachine(directory.path, { gvisorReleases: web.url })
  const path = await ensure(machine)
  const home = join(machine.place.cacheDirectory, `runsc-release-${RELEASE}`)
  expect(path).toBe(join(home, 'runsc'))
  expect((await readdir(home)).sort()).toEqual(['gvisor-bin', 'runsc'])
  expect(machine.reported).toEqual([`downloading gVisor ${RELEASE}`])
  expect(await ensure(machine)).toBe(path)
  expect(web.asked).toEqual([`${BUNDLE}.sha512`, BUNDLE])
})

test('a release with another checksum is thrown away, and Go builds instead', async () => {
  await using directory = await temporaryDirectory()
  const archive = await bundle(directory.path, `release-${RELEASE}`)
  await using web = await serveWeb({ [BUNDLE]: archive, [`${BUNDLE}.sha512`]: '00ff  it\n' })
  const machine = await fakeMachine(directory.path, { gvisorReleases: web.url })
  await machine.program('go', goScript(GO))
  expect(await ensure(machine)).toContain(`runsc-${GO}`)
})

test('a release that is another version than its name says is no source', async () => {
  await using directory = await temporaryDirectory()
  const archive = await bundle(directory.path, 'release-20210101.0')
  await using web = await serveWeb({ [BUNDLE]: archive, [`${BUNDLE}.sha512`]: sumOf(archive) })
  const machine = await fakeMachine(directory.path, { gvisorReleases: web.url })
  await expect(ensure(machine)).rejects.toThrow('says it is release-20210101.0')
})

test('Go builds the pinned module once, and leaves nothing beside it', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program('go', goScript(GO))
  const path = await ensure(machine)
  expect(path).toBe(join(machine.place.cacheDirectory, `runsc-${GO}/runsc`))
  const calls = await machine.calls()
  expect(calls).toHaveLength(1)
  expect(calls[0]).toContain(`version=${GO} gvisor.dev/gvisor/runsc@v0.0.0-`)
  const left = await readdir(machine.place.cacheDirectory)
  expect(left.sort()).toEqual([`runsc-${GO}`, 'runsc.lock'])
  expect(await ensure(machine)).toBe(path)
  expect(await machine.calls()).toHaveLength(1)
})

test('what Go had downloaded is kept for the next try when a build breaks off', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program('go', `mkdir -p "$GOMODCACHE"; touch "$GOMODCACHE/downloaded"; exit 1`)
  await expect(ensure(machine)).rejects.toThrow('go install')
  await access(join(machine.place.cacheDirectory, `runsc-${GO}.build/modules/downloaded`))
  await machine.program('go', `[ -e "$GOMODCACHE/downloaded" ] || exit 1; ${goScript(GO)}`)
  expect(await ensure(machine)).toContain(GO)
})

test('two at once build once', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program('go', `${machine.untilReported('waiting')}; ${goScript(GO)}`)
  const [one, other] = await Promise.all([ensure(machine), ensure(machine)])
  expect(one).toBe(other)
  expect(await machine.calls()).toHaveLength(1)
  expect(machine.reported).toContain('waiting for another sandlot, which brings runsc')
})

test('without any source each one is told with its reason', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await expect(ensure(machine)).rejects.toMatchObject({
    name: 'Failure',
    message: expect.stringMatching(/could not be fetched: .+; Go is not installed$/),
    hint: expect.stringMatching(/install Go .* SANDLOT_RUNSC/),
  })
  expect(await findRunsc(machine.place)).toBeUndefined()
})

test('an interruption ends the build and is no failure of a source', async () => {
  await using directory = await temporaryDirectory()
  const machine = await fakeMachine(directory.path)
  await machine.program('go', 'exec sleep 1000')
  const controller = new AbortController()
  const report = (line: string) => line.includes('with Go') && controller.abort(new Error('enough'))
  const bringing = ensureRunsc({
    report,
    signal: controller.signal,
    place: machine.place,
    tryOut: works,
  })
  await expect(bringing).rejects.toThrow(/^enough$/)
})

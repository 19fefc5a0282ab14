/**
 * Finds or brings gVisor's `runsc`: the given one, a listed version on PATH, the official release bundle, or a build of the
 * Go module at the pinned version.
 */
import { createHash } from 'node:crypto'
import { access, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cacheDirectory, runscGiven } from '../config.ts'
import { Failure } from '../failure.ts'
import { locked } from './lock.ts'
import { findProgram, runProgram } from './program.ts'

/** Versions that the driver was tried with. A private call of runsc may change from one release to the next. */
export const RUNSC_VERSIONS = [
  'go-20260905',
  'release-20260907.0',
  'release-20260914.0',
  'release-20260921.0',
] as const

/** The official bundle (runsc and its gvisor-bin/), and where gVisor publishes it. */
const RELEASE = '20260921.0'
const RELEASE_URL = `https://storage.googleapis.com/gvisor/releases/release/${RELEASE}/x86_64/gvisor.tar.bz2`

const GO_VERSION_NAME = 'go-20260905'
const GO_MODULE = 'gvisor.dev/gvisor/runsc@v0.0.0-20260905035102-160fafc42237'

const DOWNLOAD_TIMEOUT_MS = 10 * 60_000
const CONNECT_TIMEOUT_MS = 10_000
const BUILD_TIMEOUT_MS = 20 * 60_000

/** The absolute path of a runsc of a listed version. */
export async function ensureRunsc(report: (line: string) => void): Promise<string> {
  if (runscGiven) return await checkGiven(runscGiven)
  for (const directory of [`runsc-release-${RELEASE}`, `runsc-${GO_VERSION_NAME}`]) {
    const path = join(cacheDirectory, directory, 'runsc')
    if (await isExecutable(path)) return path
  }
  const onPath = await findProgram('runsc')
  if (onPath && isListed(await versionOf(onPath))) return onPath
  return await locked(cacheDirectory, 'runsc', async () => await bring(report))
}

async function bring(report: (line: string) => void): Promise<string> {
  const problems: string[] = []
  for (const source of [fromRelease, fromGo]) {
    try {
      return await source(report)
    } catch (error) {
      problems.push((error as Error).message)
    }
  }
  throw new Failure(
    `no runsc: ${problems.join('; ')}`,
    'install Go (https://go.dev/dl) and run this again, or set SANDLOT_RUNSC to a runsc of version ' +
      RUNSC_VERSIONS.join(' or '),
  )
}

async function fromRelease(report: (line: string) => void): Promise<string> {
  const directory = join(cacheDirectory, `runsc-release-${RELEASE}`)
  if (await isExecutable(join(directory, 'runsc'))) return join(directory, 'runsc')
  const sums = await fetchBytes(`${RELEASE_URL}.sha512`, CONNECT_TIMEOUT_MS)
  report(`downloading gVisor ${RELEASE}`)
  const archive = await fetchBytes(RELEASE_URL, DOWNLOAD_TIMEOUT_MS)
  const wanted = sums.toString('utf8').trim().split(/\s+/)[0]
  if (createHash('sha512').update(archive).digest('hex') !== wanted) {
    throw new Error(`the release bundle ${RELEASE_URL} does not match its checksum`)
  }
  const part = await freshPart(directory)
  await writeFile(join(part, 'gvisor.tar.bz2'), archive)
  const end = await runProgram(
    'tar',
    ['-xjf', 'gvisor.tar.bz2', '--no-same-owner', 'runsc', 'gvisor-bin'],
    {
      cwd: part,
      timeoutMs: BUILD_TIMEOUT_MS,
    },
  )
  if (!end.ok)
    throw new Error(
      `tar could not unpack the release bundle (is bzip2 installed?): ${end.output.trim()}`,
    )
  await rm(join(part, 'gvisor.tar.bz2'))
  return await publish(part, directory)
}

async function fromGo(report: (line: string) => void): Promise<string> {
  const directory = join(cacheDirectory, `runsc-${GO_VERSION_NAME}`)
  if (await isExecutable(join(directory, 'runsc'))) return join(directory, 'runsc')
  const go = await findProgram('go')
  if (!go) throw new Error('Go is not installed')
  report('building runsc with Go (one to three minutes, once for this machine)')
  const part = await freshPart(directory)
  const flags = `-s -w -X gvisor.dev/gvisor/runsc/version.version=${GO_VERSION_NAME}`
  const end = await runProgram(go, ['install', '-ldflags', flags, GO_MODULE], {
    env: { CGO_ENABLED: '0', GOBIN: part },
    cwd: part,
    timeoutMs: BUILD_TIMEOUT_MS,
  })
  if (!end.ok) throw new Error(`go install ${GO_MODULE} failed: ${end.output.trim().slice(-800)}`)
  return await publish(part, directory)
}

async function publish(part: string, directory: string): Promise<string> {
  const found = await versionOf(join(part, 'runsc'))
  if (!isListed(found)) throw new Error(`the runsc that came says it is ${found ?? 'nothing'}`)
  await rename(part, directory)
  return join(directory, 'runsc')
}

async function freshPart(directory: string): Promise<string> {
  const part = `${directory}.part`
  await rm(part, { recursive: true, force: true })
  await mkdir(part, { recursive: true })
  return part
}

async function checkGiven(path: string): Promise<string> {
  const found = await versionOf(path)
  if (isListed(found)) return path
  throw new Failure(
    `SANDLOT_RUNSC=${path} is ${found ? `version ${found}` : 'not a runsc that runs'}`,
    `set it to a runsc of version ${RUNSC_VERSIONS.join(' or ')}, or unset it to have one brought`,
  )
}

async function versionOf(path: string): Promise<string | undefined> {
  const end = await runProgram(path, ['--version'], { timeoutMs: 10_000 })
  return /runsc version (\S+)/.exec(end.output)?.[1]
}

function isListed(version: string | undefined): boolean {
  return (RUNSC_VERSIONS as readonly (string | undefined)[]).includes(version)
}

async function fetchBytes(url: string, timeoutMs: number): Promise<Buffer> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) }).catch((error) => {
    throw new Error(`${url} cannot be reached (${(error as Error).message})`)
  })
  if (!answer.ok) throw new Error(`${url} answers ${answer.status}`)
  return Buffer.from(await answer.arrayBuffer())
}

async function isExecutable(path: string): Promise<boolean> {
  return await access(path, 1).then(
    () => true,
    () => false,
  )
}

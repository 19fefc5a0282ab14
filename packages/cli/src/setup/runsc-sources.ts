/** Where runsc comes from when this machine has none: the official release bundle, or the Go module. Both are pinned. */
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Place, place as thisMachine } from '../config.ts'
import { fetchBytes, fetchFile } from './fetch.ts'
import { findProgram, runProgram } from './program.ts'
import { isListed, runscVersion } from './runsc-version.ts'
import { type Step, signalOf } from './step.ts'

/** The official bundle: runsc and its gvisor-bin/. */
const RELEASE = '20260921.0'
const GO_VERSION_NAME = 'go-20260905'
const GO_MODULE = 'gvisor.dev/gvisor/runsc@v0.0.0-20260905035102-160fafc42237'

/** A machine without the network is told so soon. */
const CHECKSUM_TIMEOUT_MS = 10_000
const DOWNLOAD_TIMEOUT_MS = 10 * 60_000
const UNPACK_TIMEOUT_MS = 5 * 60_000
const BUILD_TIMEOUT_MS = 20 * 60_000
const CHECKSUM_BYTES_MAX = 4_096
const BUNDLE_BYTES_MAX = 1 << 30

export interface SourceOptions extends Step {
  readonly place?: Place
}

/** Where each source puts its runsc, below the cache directory; the better one first. */
const DIRECTORIES = [`runsc-release-${RELEASE}`, `runsc-${GO_VERSION_NAME}`] as const
export const RUNSC_DIRECTORIES: readonly string[] = DIRECTORIES

/** Downloads the official release and checks its checksum. Fails with one line that says why not. */
export async function runscFromRelease(options: SourceOptions): Promise<string> {
  const { place = thisMachine, report } = options
  const url = `${place.gvisorReleases}/${RELEASE}/x86_64/gvisor.tar.bz2`
  const sum = await fetchBytes(`${url}.sha512`, {
    timeoutMs: CHECKSUM_TIMEOUT_MS,
    sizeBytesMax: CHECKSUM_BYTES_MAX,
    ...signalOf(options),
  })
  report(`downloading gVisor ${RELEASE}`)
  const directory = join(place.cacheDirectory, DIRECTORIES[0])
  const part = await freshPart(directory)
  const found = await fetchFile(url, join(part, 'gvisor.tar.bz2'), {
    timeoutMs: DOWNLOAD_TIMEOUT_MS,
    sizeBytesMax: BUNDLE_BYTES_MAX,
    ...signalOf(options),
  })
  const wanted = sum.toString('utf8').trim().split(/\s+/)[0]
  if (found !== wanted) throw new Error(`${url} does not match its checksum`)
  const argv = ['-xjf', 'gvisor.tar.bz2', '--no-same-owner', 'runsc', 'gvisor-bin']
  const end = await runProgram('tar', argv, {
    cwd: part,
    timeoutMs: UNPACK_TIMEOUT_MS,
    ...signalOf(options),
  })
  if (!end.ok) {
    throw new Error(`tar could not unpack it (is bzip2 installed?): ${end.output.trim()}`)
  }
  await rm(join(part, 'gvisor.tar.bz2'))
  return await publish(part, directory, options)
}

/**
 * Builds the Go module. What Go downloads and compiles on the way is over a gigabyte; it is kept in the cache until the build has
 * succeeded, so that one that was broken off goes on where it stopped, and is gone afterwards.
 */
export async function runscFromGo(options: SourceOptions): Promise<string> {
  const { place = thisMachine, report } = options
  const directory = join(place.cacheDirectory, DIRECTORIES[1])
  const go = await findProgram('go', place.searchPath)
  if (!go) throw new Error('Go is not installed')
  report('building runsc with Go (one to three minutes, once for this machine)')
  const part = await freshPart(directory)
  const work = `${directory}.build`
  await mkdir(work, { recursive: true })
  const flags = `-s -w -X gvisor.dev/gvisor/runsc/version.version=${GO_VERSION_NAME}`
  const end = await runProgram(go, ['install', '-modcacherw', '-ldflags', flags, GO_MODULE], {
    env: {
      CGO_ENABLED: '0',
      GOBIN: part,
      GOPATH: work,
      GOMODCACHE: join(work, 'modules'),
      GOCACHE: join(work, 'objects'),
      GOFLAGS: '',
    },
    cwd: part,
    timeoutMs: BUILD_TIMEOUT_MS,
    ...signalOf(options),
  })
  if (!end.ok) throw new Error(`go install ${GO_MODULE} failed: ${end.output.trim().slice(-800)}`)
  const path = await publish(part, directory, options)
  await rm(work, { recursive: true, force: true })
  return path
}

async function publish(part: string, directory: string, options: SourceOptions): Promise<string> {
  const found = await runscVersion(join(part, 'runsc'), options.signal)
  if (!isListed(found)) throw new Error(`the runsc that came says it is ${found ?? 'nothing'}`)
  await rm(directory, { recursive: true, force: true })
  await rename(part, directory)
  return join(directory, 'runsc')
}

async function freshPart(directory: string): Promise<string> {
  const part = `${directory}.part`
  await rm(part, { recursive: true, force: true })
  await mkdir(part, { recursive: true })
  return part
}

/** The guest agent and the host helper: built by cargo, once for each content of `native/`, shared by all checkouts. */
import { createHash } from 'node:crypto'
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { type Place, place as thisMachine } from '../config.ts'
import { Failure } from '../failure.ts'
import { runCargo } from './cargo.ts'
import { locked } from './lock.ts'
import { isExecutable } from './program.ts'
import { type Step, signalOf } from './step.ts'

const BUILD_TIMEOUT_MS = 20 * 60_000
/** Builds kept beside the one in use: those of other branches and checkouts. */
const OTHERS_KEPT = 4
/** A source may be edited while it is built. */
const TRIES = 3
const TARGET = 'x86_64-unknown-linux-gnu'
const PREFIX = 'native-'
/** Below a crate; no part of the two programs. */
const BESIDE = new Set(['target', 'tests', 'examples', 'benches'])

export interface NativeBinaries {
  readonly agent: string
  readonly helper: string
}

export interface NativeOptions extends Step {
  readonly place?: Place
}

/** Paths of the built binaries; builds them when this content has not been built on this machine yet. */
export async function ensureNative(options: NativeOptions): Promise<NativeBinaries> {
  const { place = thisMachine, report } = options
  const found = await findNative(place)
  if (found) return found
  const lock = {
    directory: place.cacheDirectory,
    name: 'native',
    onWait: () => report('waiting for another sandlot, which builds the native programs'),
    ...signalOf(options),
  }
  return await locked(lock, async () => (await findNative(place)) ?? (await build(options)))
}

/** The given ones, or those that were built from what `native/` holds now. */
export async function findNative(place: Place = thisMachine): Promise<NativeBinaries | undefined> {
  if (place.nativeGiven) return place.nativeGiven
  const directory = join(place.cacheDirectory, PREFIX + (await nativeKey(place.nativeDirectory)))
  const built = binariesIn(directory)
  if (!(await isExecutable(built.helper))) return undefined
  // The oldest are removed first: this one is in use.
  const now = new Date()
  await utimes(directory, now, now).catch(() => undefined)
  return built
}

function binariesIn(directory: string): NativeBinaries {
  return { agent: join(directory, 'sandlot-agent'), helper: join(directory, 'sandlot-helper') }
}

async function build(options: NativeOptions): Promise<NativeBinaries> {
  const { place = thisMachine } = options
  options.report('building the guest agent and the host helper (cargo)')
  for (let tries = 1; ; tries++) {
    const key = await nativeKey(place.nativeDirectory)
    await compile(options)
    const isSame = key === (await nativeKey(place.nativeDirectory))
    if (!isSame && tries < TRIES) continue
    if (!isSame) {
      throw new Failure(
        `${place.nativeDirectory} changed each time while it was built`,
        'run this again when nobody edits it',
      )
    }
    const directory = join(place.cacheDirectory, PREFIX + key)
    await publish(directory, place)
    await removeOld(place.cacheDirectory, PREFIX + key)
    return binariesIn(directory)
  }
}

async function compile(options: NativeOptions): Promise<void> {
  const { place = thisMachine, report } = options
  // The target is named, so that the binaries lie where they are looked for whatever the user's own configuration says.
  const argv = ['build', '--release', '--locked', '--bins', '--target', TARGET]
  const end = await runCargo(argv, {
    place,
    timeoutMs: BUILD_TIMEOUT_MS,
    onLine: (line) => /^\s*(Compiling|Finished)/.test(line) && report(line.trim()),
    ...signalOf(options),
  })
  if (!end) {
    throw new Failure(
      'cargo is needed to build the guest agent and the host helper',
      'install Rust 1.85 or newer from https://rustup.rs, then run this again',
    )
  }
  if (end.ok) return
  throw new Failure(
    `cargo build failed:\n${end.output.trimEnd().split('\n').slice(-15).join('\n')}`,
    hintOf(end.output),
  )
}

function hintOf(output: string): string {
  if (/target may not be installed|can't find crate for `(core|std)`/.test(output)) {
    return `run: rustup target add ${TARGET}`
  }
  if (/rustup could not choose/.test(output)) {
    return 'run: rustup default stable'
  }
  return 'run `cargo build --release` in native/ to see it whole'
}

async function publish(directory: string, place: Place): Promise<void> {
  const part = `${directory}.part`
  await rm(part, { recursive: true, force: true })
  await mkdir(part, { recursive: true })
  const built = binariesIn(join(place.nativeDirectory, 'target', TARGET, 'release'))
  const copies = binariesIn(part)
  await copyFile(built.agent, copies.agent)
  await copyFile(built.helper, copies.helper)
  await rm(directory, { recursive: true, force: true })
  await rename(part, directory)
}

/** A daemon that still runs on an old one has its helper in memory and its agent in an image of its own. */
async function removeOld(cacheDirectory: string, inUse: string): Promise<void> {
  const names = (await readdir(cacheDirectory)).filter(
    (name) => /^native-[0-9a-f]{16}(\.part.*)?$/.test(name) && name !== inUse,
  )
  const aged = await Promise.all(
    names.map(async (name) => {
      const { mtimeMs } = await stat(join(cacheDirectory, name))
      return { name, mtimeMs: name.includes('.part') ? 0 : mtimeMs }
    }),
  )
  aged.sort((a, b) => b.mtimeMs - a.mtimeMs)
  for (const { name } of aged.slice(OTHERS_KEPT)) {
    await rm(join(cacheDirectory, name), { recursive: true, force: true })
  }
}

/** A hash over names and bytes of all that the two programs are built from. */
export async function nativeKey(nativeDirectory: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const path of sources(nativeDirectory)) {
    hash.update(`${relative(nativeDirectory, path)}\0`).update(await readFile(path))
  }
  return hash.digest('hex').slice(0, 16)
}

async function* sources(directory: string): AsyncGenerator<string> {
  const entries = await readdir(directory, { withFileTypes: true })
  entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries) {
    const path = join(directory, entry.name)
    if (entry.isDirectory() && !BESIDE.has(entry.name)) yield* sources(path)
    else if (entry.isFile() && /\.(rs|toml|lock)$/.test(entry.name)) yield path
  }
}

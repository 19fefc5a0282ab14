/** The guest agent and the host helper: built by cargo, once for each content of `native/`. */
import { createHash } from 'node:crypto'
import { access, copyFile, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { cacheDirectory, nativeDirectory, nativeGiven } from '../config.ts'
import { Failure } from '../failure.ts'
import { locked } from './lock.ts'
import { findProgram, runProgram } from './program.ts'

const BUILD_TIMEOUT_MS = 20 * 60_000
const BINARIES = ['agent', 'helper'] as const

export interface NativeBinaries {
  readonly agent: string
  readonly helper: string
}

/** Paths of the built binaries; builds them when this content has not been built on this machine yet. */
export async function ensureNative(report: (line: string) => void): Promise<NativeBinaries> {
  if (nativeGiven) return nativeGiven
  const directory = join(cacheDirectory, `native-${await contentKey()}`)
  const built = {
    agent: join(directory, 'sandlot-agent'),
    helper: join(directory, 'sandlot-helper'),
  }
  if (await exists(built.helper)) return built
  return await locked(cacheDirectory, 'native', async () => {
    if (!(await exists(built.helper))) await build(directory, report)
    return built
  })
}

async function build(directory: string, report: (line: string) => void): Promise<void> {
  const cargo = await findProgram('cargo')
  if (!cargo) {
    throw new Failure(
      'cargo is needed to build the guest agent and the host helper',
      'install Rust 1.85 or newer from https://rustup.rs, then run this again',
    )
  }
  report('building the guest agent and the host helper (cargo)')
  const end = await runProgram(cargo, ['build', '--release', '--locked', '--bins'], {
    cwd: nativeDirectory,
    timeoutMs: BUILD_TIMEOUT_MS,
    onLine: (line) => /^\s*(Compiling|Finished)/.test(line) && report(line.trim()),
  })
  if (!end.ok) {
    throw new Failure(
      `cargo build failed:\n${tail(end.output)}`,
      'run `cargo build --release` in native/ to see it whole',
    )
  }
  const part = `${directory}.part.${process.pid}`
  await rm(part, { recursive: true, force: true })
  await mkdir(part, { recursive: true })
  const target = await releaseDirectory()
  for (const name of BINARIES)
    await copyFile(join(target, `sandlot-${name}`), join(part, `sandlot-${name}`))
  await rename(part, directory).catch(async (error) => {
    await rm(part, { recursive: true, force: true })
    if (!(await exists(directory))) throw error
  })
}

/** Cargo puts binaries below the target's name when one is configured. */
async function releaseDirectory(): Promise<string> {
  const named = join(nativeDirectory, 'target/x86_64-unknown-linux-gnu/release')
  return (await exists(join(named, 'sandlot-agent')))
    ? named
    : join(nativeDirectory, 'target/release')
}

/** A hash over names and bytes of every source file. */
async function contentKey(): Promise<string> {
  const hash = createHash('sha256')
  const files = (await readdir(nativeDirectory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter(
      (path) => !path.startsWith(join(nativeDirectory, 'target')) && /\.(rs|toml|lock)$/.test(path),
    )
    .sort()
  for (const path of files)
    hash.update(`${path.slice(nativeDirectory.length)}\0`).update(await readFile(path))
  return hash.digest('hex').slice(0, 16)
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}

function tail(text: string): string {
  return text.trimEnd().split('\n').slice(-15).join('\n')
}

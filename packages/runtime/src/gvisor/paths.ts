import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { IDENTITY_FILE } from './identity-image.ts'

/**
 * What a sandbox has on this machine, one directory each:
 *
 * ```
 * <stateDirectory>/lock              of the one daemon that uses it
 * <stateDirectory>/s/                shared by all: the runtime's own
 * <stateDirectory>/e/                empty
 * <stateDirectory>/b/<hostId>/
 *   state.json                       who it is; written before the start (state.ts)
 *   config.json                      OCI bundle
 *   identity                         of one that may be copied (identity-image.ts)
 *   in  out                          FIFOs, 0600
 *   r/                               --root; the control socket lives in it
 *   pid  runsc.log  agent.log  panic.log
 * ```
 * Short names: a control socket's path is at most 107 bytes.
 */
export interface SandboxPaths {
  readonly directory: string
  readonly state: string
  readonly config: string
  readonly identity: string
  readonly input: string
  readonly output: string
  readonly root: string
  readonly controlSocket: string
  readonly pid: string
  readonly runscLog: string
  readonly agentLog: string
  readonly panicLog: string
}

export function sandboxPaths(stateDirectory: string, hostId: string): SandboxPaths {
  const directory = join(sandboxesDirectory(stateDirectory), hostId)
  const root = join(directory, 'r')
  return {
    directory,
    state: join(directory, 'state.json'),
    config: join(directory, 'config.json'),
    identity: join(directory, IDENTITY_FILE),
    input: join(directory, 'in'),
    output: join(directory, 'out'),
    root,
    controlSocket: join(root, `runsc-${hostId}.sock`),
    pid: join(directory, 'pid'),
    runscLog: join(directory, 'runsc.log'),
    agentLog: join(directory, 'agent.log'),
    panicLog: join(directory, 'panic.log'),
  }
}

export function sandboxesDirectory(stateDirectory: string): string {
  return join(stateDirectory, 'b')
}

export function sharedRoot(stateDirectory: string): string {
  return join(stateDirectory, 's')
}

/** A directory in which there is nothing; bundles name one as their root. */
export function emptyDirectory(stateDirectory: string): string {
  return join(stateDirectory, 'e')
}

/** Held by the one daemon that uses the directory, as long as it lives. */
export function stateLock(stateDirectory: string): string {
  return join(stateDirectory, 'lock')
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'
const HOST_ID_CHARS = 16

/** Names a started sandbox on this machine; never used twice. */
export function newHostId(): string {
  const chars = Array.from({ length: HOST_ID_CHARS }, () => ALPHABET[randomInt(ALPHABET.length)])
  return chars.join('')
}

export function isHostId(name: string): boolean {
  return /^[a-z0-9]{16}$/.test(name)
}

import { randomInt } from 'node:crypto'
import type { Layer, RuntimeDriver, Sandbox, SandboxSpec } from '../driver.ts'
import type { ExecOutcome, ExecRunSpec } from '../guest/guest.ts'

/** What a driver gives the suite, beyond itself. */
export interface DriverHarness {
  readonly name: string
  /** A driver over a machine of its own. */
  open(): Promise<OpenedDriver>
  /** Of an image with a shell, coreutils and python3. */
  readonly layers: readonly Layer[]
}

export interface OpenedDriver {
  readonly driver: RuntimeDriver
  /** For checkpoints; empty, and removed by `close`. */
  readonly directory: string
  /** Ends a sandbox, or a blank, behind the driver's back. */
  killFromOutside(sandbox: Pick<Sandbox, 'hostId'>): Promise<void>
  /** Starts sandboxes in a daemon that then dies without a word; returns a driver that has not recovered yet. */
  orphan(specs: readonly SandboxSpec[]): Promise<RuntimeDriver>
  /** What is left on the machine, one line each; to be empty after the drivers were disposed. */
  leaks(): Promise<readonly string[]>
  /** After the last check. */
  close(): Promise<void>
}

const MIB = 2 ** 20

/** A spec for the harness's image; what a test is about it says itself. */
export function specFor(
  harness: DriverHarness,
  over: Partial<Omit<SandboxSpec, 'limits'>> & { limits?: Partial<SandboxSpec['limits']> } = {},
): SandboxSpec {
  const { limits, ...rest } = over
  return {
    id: `sb_${Array.from({ length: 20 }, () => randomInt(36).toString(36)).join('')}`,
    layers: harness.layers,
    hostname: 'conformance',
    detachedMs: 60_000,
    ...rest,
    limits: {
      memoryBytes: 128 * MIB,
      cpus: 2,
      pidsMax: 64,
      diskBytes: 32 * MIB,
      nofileMax: 256,
      ...limits,
    },
  }
}

let lastExec = 0

/** Runs a shell text in a world; output as text. */
export async function shell(
  sandbox: Sandbox,
  text: string,
  over: Partial<ExecRunSpec> = {},
): Promise<Omit<ExecOutcome, 'stdout' | 'stderr'> & { stdout: string; stderr: string }> {
  const outcome = await sandbox.guest.exec.run({ ...shellSpec(text), ...over })
  const { stdout, stderr, ...rest } = outcome
  return { ...rest, stdout: utf8(stdout), stderr: utf8(stderr) }
}

export function shellSpec(text: string): ExecRunSpec {
  return {
    world: 'main',
    exec: `c${++lastExec}`,
    argv: ['sh', '-c', text],
    env: [['PATH', '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin']],
    cwd: '/',
  }
}

export async function readText(sandbox: Sandbox, world: string, path: string): Promise<string> {
  const { content } = await sandbox.guest.files.read(world, path)
  return utf8(Buffer.concat(await Array.fromAsync(content)))
}

function utf8(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString()
}

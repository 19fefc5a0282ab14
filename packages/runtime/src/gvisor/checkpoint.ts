import { copyFile, mkdir, rm, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { formatSize } from '@sandlot/protocol'
import { type CheckpointFacts, DriverError } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { run } from '../process/run.ts'
import { seal } from './checkpoint-files.ts'
import { CHECKPOINT_FORMAT } from './compatible.ts'
import type { GvisorContext } from './context.ts'
import { IDENTITY_FILE } from './identity-image.ts'
import type { Instance } from './instance.ts'
import { checkpointMs } from './memory-time.ts'
import { runscFlags } from './runsc.ts'

/**
 * Freezes the agent, has the runtime write memory and files, and brings them to the disk. One that goes on stands still while the runtime
 * writes, and no longer; one that is to be stopped is left alive until all is certain, so a full disk costs no sandbox.
 */
export async function checkpoint(
  context: GvisorContext,
  instance: Instance,
  directory: string,
  options: { readonly leaveRunning: boolean; readonly signal: AbortSignal },
): Promise<CheckpointFacts> {
  const { signal, leaveRunning } = options
  const { spec } = instance.sandbox()
  if (spec.checkpointable !== true) throw notCheckpointable(spec.id)
  const machine = await context.runtimeFacts()
  await refuseTooLarge(instance, directory)
  const part = `${directory}.part`
  await rm(part, { recursive: true, force: true })
  await mkdir(part, { recursive: true, mode: 0o700 })
  try {
    await copyFile(instance.paths.identity, join(part, IDENTITY_FILE))
    await instance.guest.freeze({ signal })
    await save(context, instance, part)
    if (leaveRunning) await instance.guest.thaw()
    signal.throwIfAborted()
    const layers = spec.layers.map(({ digest }) => digest)
    const facts = { format: CHECKPOINT_FORMAT, ...machine, layers, limits: spec.limits }
    const sealed = await seal(part, directory, spec.id, facts)
    if (!leaveRunning) await instance.end('stop')
    return sealed
  } catch (error) {
    await rm(part, { recursive: true, force: true })
    await goOn(instance, error)
    throw signal.aborted ? signal.reason : failed(error)
  }
}

/** The runtime's part. It resumes the sandbox when it is done, whoever has died meanwhile; so an abort waits for it. */
async function save(context: GvisorContext, instance: Instance, part: string): Promise<void> {
  await instance.save({ saving: true })
  try {
    await write(context, instance, part)
  } finally {
    await instance.save({ saving: false })
  }
}

async function write(
  context: GvisorContext,
  { hostId, paths, state }: Instance,
  part: string,
): Promise<void> {
  const { runsc, stateDirectory, systrap } = context.options
  const flags = runscFlags(stateDirectory, paths, systrap)
  const verb = ['checkpoint', `--image-path=${part}`, '--leave-running', hostId]
  const timeoutMs = state.owner ? checkpointMs(state.owner.spec.limits) : 0
  const outcome = await run(runsc, [...flags, ...verb], { timeoutMs })
  if (outcome.exitCode === 0) return
  const said = outcome.stderr.trim().split('\n')[0] || outcome.problem
  throw new Error(`the runtime could not save it: ${said?.slice(0, RUNTIME_LIMITS.evidenceChars)}`)
}

/** After a failure: a sandbox whose agent doesn't go on is of no use to anybody. */
async function goOn(instance: Instance, cause: unknown): Promise<void> {
  if (instance.ending) return
  const wait = { timeoutMs: RUNTIME_LIMITS.checkoutMs }
  await instance.guest.thaw(undefined, wait).catch(() => {
    return instance.end('lost', `its agent did not go on after a checkpoint: ${cause}`)
  })
}

/**
 * Near a full disk a checkpoint may be cut without an error of the runtime. Writable files on the disk are copied with the memory, while the
 * sandbox stands still.
 */
async function refuseTooLarge(instance: Instance, directory: string): Promise<void> {
  await mkdir(dirname(directory), { recursive: true, mode: 0o700 })
  const { bavail, bsize } = await statfs(dirname(directory))
  const { memoryBytes, diskBytes } = await instance.usage()
  if (diskBytes > RUNTIME_LIMITS.checkpointDiskBytesMax) throw tooMuchDisk(instance, diskBytes)
  const neededBytes = memoryBytes + diskBytes
  if (bavail * bsize > neededBytes + RUNTIME_LIMITS.checkpointSpareBytes) return
  throw noSpace(`it may take ${neededBytes} bytes, and ${bavail * bsize} are free`)
}

function tooMuchDisk(instance: Instance, diskBytes: number): DriverError {
  const { id } = instance.sandbox()
  const most = formatSize(RUNTIME_LIMITS.checkpointDiskBytesMax)
  return new DriverError(
    'unsupported',
    `the memory of sandbox ${id} can't be saved: its files take ${formatSize(diskBytes)} of the disk, and at most ${most} are saved with it`,
    { hint: 'delete files in it, or save its files alone: a snapshot of kind `filesystem`' },
  )
}

function failed(error: unknown): DriverError {
  if (error instanceof DriverError) return error
  const message = error instanceof Error ? error.message : String(error)
  if ((error as NodeJS.ErrnoException).code === 'ENOSPC' || /no space left/i.test(message)) {
    return noSpace(message, error)
  }
  return new DriverError('checkpoint_failed', `the checkpoint failed: ${message}`, {
    hint: 'try again; the sandbox lives on',
    cause: error,
  })
}

function noSpace(detail: string, cause?: unknown): DriverError {
  return new DriverError('no_space', `there is no room for the checkpoint: ${detail}`, {
    hint: 'delete snapshots or images, or give the data directory a larger disk',
    cause,
  })
}

function notCheckpointable(id: string): DriverError {
  return new DriverError('unsupported', `the memory of sandbox ${id} can't be saved`, {
    hint: 'create it with `checkpointable: true`',
  })
}

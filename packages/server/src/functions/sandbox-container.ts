/** A container in a sandbox of the node: Node.js comes as a layer of the daemon's own, the function by its digest. */
import { randomBytes } from 'node:crypto'
import type { Digest, Engine } from '@sandlot/engine'
import { type Fault, formatDuration, newId, SandlotError } from '@sandlot/protocol'
import { type ExecHandle, type ImageStore, NODE_PATH } from '@sandlot/runtime'
import { toSandlotError } from '../failure.ts'
import { execError, execSpec } from '../node/commands.ts'
import { endedHow, withWords } from '../node/ended-how.ts'
import type { Lent } from '../node/lend.ts'
import type { Node } from '../node/node.ts'
import { FUNCTION } from '../node/owners.ts'
import type { SandboxEnded } from '../node/port.ts'
import type { Container, ContainerEnd, ContainerSource, OpenContainer } from './container.ts'
import { FUNCTION_LIMITS } from './limits.ts'
import { Runner } from './runner.ts'
import { FUNCTION_DIRECTORY, MODULE_PATH, RUNNER_PATH, runnerFiles } from './runner-files.ts'
import { lostError, taskErrorOf } from './tries.ts'

export interface SandboxContainersOptions {
  readonly node: Node
  readonly images: ImageStore
  readonly engine: Engine
  /** A content was stored for a project. */
  readonly onStored: (project: string, blob: string) => Promise<void>
}

export function sandboxContainers(options: SandboxContainersOptions): ContainerSource {
  const { node, images } = options
  return async (request) => {
    const { definition, project, tags, reachesApi, signal } = request
    const sandbox = newId('sandbox')
    const release = async (reason: string) => {
      await node.release({ sandbox, reason })
    }
    try {
      const { id } = await images.withNode(definition.image ?? undefined, { signal })
      using pinned = await images.pin(id)
      await node.acquire(
        {
          ...{ sandbox, project, image: pinned.image.id, owner: FUNCTION, epoch: 0 },
          resources: definition.resources,
          tags,
          hostname: 'function',
          network: { agent: definition.network },
          ...(definition.secrets ? { secrets: definition.secrets } : {}),
          ...(reachesApi ? { reachesApi } : {}),
          waitMs: FUNCTION_LIMITS.roomMs,
        },
        { signal },
      )
      const lent = await node.sandboxes.lend(sandbox, { signal })
      const container = await begin(lent, request, options)
      const close = container.close
      return {
        ...container,
        close: async () => {
          await close()
          lent[Symbol.dispose]()
          await release('its function has nothing to do')
        },
      }
    } catch (error) {
      await release('its function did not begin').catch(() => {})
      throw toSandlotError(error)
    }
  }
}

async function begin(
  lent: Lent,
  { definition, project, signal }: OpenContainer,
  { engine, onStored }: SandboxContainersOptions,
): Promise<Container> {
  try {
    await bringFiles(lent, definition.bundle, { engine, signal })
    const secret = randomBytes(16).toString('hex')
    const handle = lent.guest.exec.start({
      ...execSpec(lent, {
        exec: newId('exec'),
        argv: argvOf(definition),
        env: definition.env,
      }),
      stdin: true,
      mode: 'stream',
      forget: true,
    })
    const runner = new Runner({
      handle,
      secret,
      label: definition.label,
      files: { guest: lent.guest, blobs: engine.blobs, stored: (blob) => onStored(project, blob) },
      ended: (said) => howItEnded(lent, handle, { said, label: definition.label }),
    })
    const late = AbortSignal.timeout(FUNCTION_LIMITS.readyMs)
    await runner.ready(AbortSignal.any([signal, late])).catch((error) => {
      throw late.aborted ? lateError(definition.label) : error
    })
    return {
      id: lent.id,
      gone: runner.gone,
      run: (input) => runner.run(input),
      cancel: (id) => runner.cancel(id),
      abort: (id) => runner.abort(id),
      bring: (name, blob) => runner.bring(name, blob),
      collect: (name, digest) => runner.collect(name, digest),
      close: async () => runner.close(),
    }
  } catch (error) {
    throw error instanceof SandlotError ? error : await lent.explain(error)
  }
}

function lateError(label: string): SandlotError {
  const message = `${label} was not loaded within ${formatDuration(FUNCTION_LIMITS.readyMs)}`
  return new SandlotError('function_timeout', message, {
    hint: 'Look for an `await` at the top of the module that does not end, and put long preparations into the image.',
  })
}

function argvOf({ export: name, label }: OpenContainer['definition']): string[] {
  const inline = String(FUNCTION_LIMITS.inlineBytes)
  return [
    ...[NODE_PATH, '--enable-source-maps', RUNNER_PATH],
    ...[name, label, inline, FUNCTION_DIRECTORY],
  ]
}

/** The directory is everybody's: the function may run as another user than root. */
async function bringFiles(
  { guest }: Lent,
  bundle: string,
  { engine, signal }: { readonly engine: Engine; readonly signal: AbortSignal },
): Promise<void> {
  const wait = { signal }
  await guest.files.makeDirectory('main', FUNCTION_DIRECTORY, { parents: true }, wait)
  await guest.files.chmod('main', FUNCTION_DIRECTORY, 0o777, wait)
  for (const { path, content } of await runnerFiles()) {
    await guest.files.write('main', path, content, {}, wait)
  }
  const { body } = await engine.blobs.open(bundle as Digest, wait)
  await guest.files.write('main', MODULE_PATH, body, {}, wait)
}

/** Whose doing it was that the runner is no more. */
async function howItEnded(
  lent: Lent,
  handle: ExecHandle,
  { said, label }: { readonly said: string; readonly label: string },
): Promise<ContainerEnd> {
  const words = { stdout: NOTHING, stderr: Buffer.from(said) }
  try {
    const { exitCode = null, signal = null } = await handle.result
    return exited(`the process of ${label} ${endedHow({ exitCode, signal, ...words })}`)
  } catch (error) {
    const why = execError(error) ?? (await lent.explain(error))
    const ending = why.details?.ending as SandboxEnded | undefined
    const isOwn = ending ? ending.kind === 'oom_limit' : OWN_FAULTS.has(why.fault)
    if (isOwn) return exited(withWords(`the container of ${label} ended: ${why.message}`, words))
    return { kind: 'infra', error: lostError(`the container of ${label} was lost: ${why.message}`) }
  }
}

const NOTHING = new Uint8Array()
const OWN_FAULTS: ReadonlySet<Fault> = new Set(['caller', 'workload'])

function exited(message: string): ContainerEnd {
  return { kind: 'error', error: taskErrorOf(new SandlotError('function_exited', message)) }
}

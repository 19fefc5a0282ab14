/** `client.prepare`: an environment, made once, from which any number of sandboxes start. */
import { createHash } from 'node:crypto'
import {
  type Command,
  command,
  environment,
  kernelText,
  type NetworkPolicy,
  networkPolicy,
  type OnRestoreInput,
  type ReadyCheck,
  type ResourcesInput,
  SandlotError,
  type SnapshotKind,
  type Tags,
  type TemplateView,
  templateCreate,
  templateLine,
  userName,
} from '@sandlot/protocol'
import { z } from 'zod'
import type { ClientContext } from '../connection/context.ts'
import { type LogOptions, loggedWork } from '../connection/logged-work.ts'
import { refuseEarly, refuseResources } from '../connection/refuse-early.ts'
import { Image, ImageDescription } from '../image/image.ts'
import { type ImageLike, resolveImage } from '../image/resolve.ts'
import { withSource } from '../image/source.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { Sandboxes } from '../sandbox/sandboxes.ts'
import { Snapshots } from '../snapshot/snapshots.ts'

/** A command, or a function with a key of its own: change the key when the function changes, since its code can't be compared. */
export type SetupStep =
  | string
  | readonly string[]
  | {
      readonly key: string
      readonly run: (context: { readonly sandbox: Sandbox }) => Promise<unknown>
    }

export interface PrepareOptions extends LogOptions {
  /** What it begins with. */
  readonly from: ImageLike
  /** Files and directories of this machine, and where they go. */
  readonly files?: Readonly<Record<string, string>>
  /** In order, after the files are there. Each result is kept: what did not change is not run again. */
  readonly setup?: readonly SetupStep[]
  /** Variables of the set-up and of all that starts from the template. */
  readonly env?: Readonly<Record<string, string>>
  /** Where the set-up runs, and all that starts from the template. */
  readonly workdir?: string
  readonly user?: string
  /** Of sandboxes that start from it. */
  readonly resources?: ResourcesInput
  /** What the set-up alone reaches. Default: `packages`, the package mirrors of the daemon's machine. */
  readonly network?: NetworkPolicy
  /** `memory`: starts come with what `start` began, running. Default: `filesystem`. */
  readonly snapshot?: SnapshotKind
  /** Begun before a memory snapshot is taken, and left running. */
  readonly start?: Command
  /** What must come true before a memory snapshot is taken. */
  readonly ready?: ReadyCheck
  /** How long `ready` may take, such as `'2m'`. Default: one minute. */
  readonly readyTimeout?: string | number
  /** Runs in everything that starts from the memory, before anybody has it. */
  readonly onRestore?: OnRestoreInput
  readonly name?: string
  readonly tags?: Tags
}

/** Prepares an environment, or finds the one of the same content at once. */
export async function prepare(
  context: ClientContext,
  options: PrepareOptions,
): Promise<TemplateView> {
  const { snapshot, resources, start, ready, readyTimeout, onRestore, name, tags } = options
  const memory = { start, ready, readyTimeout, onRestore }
  const template = { snapshot, resources, ...memory, name, tags }
  refuseEarly(templateCreate, { ...template, source: { kind: 'id', id: 'described' } })
  refuseResources(resources)
  const described = await describe(context, options)
  return await withSource(context, described, logOf(options), (source) =>
    loggedWork(context, 'prepareTemplate', { ...template, source }, options, (line) => {
      const news = templateLine.parse(line)
      return news.kind === 'done' ? { kind: 'done', value: news.template } : news
    }),
  )
}

/** What becomes steps of the build, where a function may stand among them. */
const prepared = z.object({
  setup: z.array(command).optional(),
  env: environment.optional(),
  workdir: kernelText.min(1).optional(),
  user: userName.optional(),
  network: networkPolicy.optional(),
})

async function describe(
  context: ClientContext,
  options: PrepareOptions,
): Promise<ImageDescription> {
  const { from, files = {}, setup = [], env, workdir, user, network } = options
  refuseEarly(prepared, { setup: setup.filter(isCommand), env, workdir, user, network })
  let image =
    from instanceof ImageDescription
      ? from
      : Image.fromId(await resolveImage(context, from, logOf(options)))
  if (network !== undefined) image = image.network(network)
  if (env) image = image.env(env)
  for (const [local, remote] of Object.entries(files)) image = image.copy(local, remote)
  if (workdir !== undefined) image = image.workdir(workdir)
  if (user !== undefined) image = image.user(user)
  for (const step of setup) {
    image = isCommand(step) ? image.run(step) : await ran(context, image, step, options)
  }
  return image
}

function isCommand(step: SetupStep): step is string | readonly string[] {
  if (typeof step === 'string' || Array.isArray(step)) return true
  const { key, run } = step as { key?: unknown; run?: unknown }
  if (typeof run === 'function' && typeof key === 'string' && key !== '') return false
  throw new SandlotError(
    'invalid_request',
    'a step of setup is neither a command nor a function with a key',
    {
      hint: 'Give a function as { key: "any name, changed with the function", run: async ({ sandbox }) => … }: its code can’t be compared.',
    },
  )
}

/** What a function leaves in a sandbox, as a snapshot that the next call finds by the function's key and all that came before it. */
async function ran(
  context: ClientContext,
  before: ImageDescription,
  step: Extract<SetupStep, { key: string }>,
  options: PrepareOptions,
): Promise<ImageDescription> {
  const { signal, network = 'packages' } = options
  const waiting = signal ? { signal } : {}
  const from = await resolveImage(context, before, logOf(options))
  const key = createHash('sha256')
    .update(JSON.stringify([from, step.key]))
    .digest('hex')
  const name = `setup/${key}`
  const snapshots = new Snapshots(context)
  for await (const found of snapshots.list({ name, ...waiting })) return Image.fromId(found.id)
  options.onLog?.(`running the function ${step.key}`)
  const { resources } = options
  await using sandbox = await new Sandboxes(context).create({
    from,
    network,
    ...(resources ? { resources } : {}),
    ...waiting,
  })
  await step.run({ sandbox })
  const taken = await sandbox.snapshot({ kind: 'filesystem', name, hidden: true, ...waiting })
  for (const line of taken.warnings ?? []) options.onLog?.(line)
  return Image.fromId(taken.id)
}

function logOf({ signal, onLog }: PrepareOptions): LogOptions {
  return { ...(signal ? { signal } : {}), ...(onLog ? { onLog } : {}) }
}

/** `client.prepare`: an environment, made once, from which any number of sandboxes start. */
import {
  type Command,
  command,
  environment,
  kernelText,
  LIMITS,
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
  wholeText,
} from '@sandlot/protocol'
import { z } from 'zod'
import type { ClientContext } from '../connection/context.ts'
import type { RunFunction } from '../connection/function-calls.ts'
import { type LogOptions, loggedWork } from '../connection/logged-work.ts'
import { refuseEarly, refuseResources } from '../connection/refuse-early.ts'
import { Image, ImageDescription } from '../image/image.ts'
import { type ImageLike, resolveImage } from '../image/resolve.ts'
import { withSource } from '../image/source.ts'
import { Sandbox } from '../sandbox/sandbox.ts'

/** A command, or a function with a key of its own: change the key when the function changes, since its code can't be compared. */
export type SetupStep =
  | string
  | readonly string[]
  | { readonly key: string; readonly run: RunInSandbox }

type RunInSandbox = (context: { readonly sandbox: Sandbox }) => Promise<unknown>

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
  const { from, files, setup, env, workdir, user, network, signal, onLog, onDetail, ...rest } =
    options
  refuseEarly(setupOptions, { files, setup, env, workdir, user, network })
  for (const [at, step] of (setup ?? []).entries()) checkStep(step, `setup.${at}`)
  refuseEarly(templateCreate, { ...rest, source: { kind: 'id', id: 'described' } })
  refuseResources(rest.resources)
  const waiting = { ...(signal ? { signal } : {}), ...(onLog ? { onLog } : {}) }
  const functions: RunInSandbox[] = []
  const base =
    from instanceof ImageDescription
      ? from
      : Image.fromId(await resolveImage(context, from, waiting))
  const described = describe(base, options, functions)
  const onFunction: RunFunction = async ({ key, call = -1, sandbox }) => {
    const run = functions[call]
    if (!run) throw new SandlotError('unsupported', `nothing here knows the function ${key}`)
    await run({ sandbox: new Sandbox(context, sandbox, waiting) })
  }
  const work = { ...waiting, ...(onDetail ? { onDetail } : {}), onFunction }
  return await withSource(context, described, waiting, (source) =>
    loggedWork(context, 'prepareTemplate', { ...rest, source }, work, (line) => {
      const news = templateLine.parse(line)
      return news.kind === 'done' ? { kind: 'done', value: news.template } : news
    }),
  )
}

/** What becomes steps of the build. */
const setupOptions = z.object({
  files: z.record(z.string(), kernelText.min(1)).optional(),
  setup: z.array(z.unknown()).optional(),
  env: environment.optional(),
  workdir: kernelText.min(1).optional(),
  user: userName.optional(),
  network: networkPolicy.optional(),
})

/** @throws SandlotError `invalid_request` */
function checkStep(step: SetupStep, where: string): void {
  const { key, run } = (step ?? {}) as { key?: unknown; run?: unknown }
  if (isCommand(step)) refuseEarly(command, step, where)
  else if (typeof run === 'function' && typeof key === 'string') {
    refuseEarly(functionKey, key, `${where}.key`)
  } else {
    throw new SandlotError('invalid_request', `${where}: neither a command nor a function`, {
      hint: 'Give a function as { key: "any name, changed with the function", run: async ({ sandbox }) => … }: its code can’t be compared.',
    })
  }
}

const functionKey = wholeText.min(1).max(LIMITS.keyLength)

/** `functions` gets those that are steps, in their order. */
function describe(
  base: ImageDescription,
  { files = {}, setup = [], env, workdir, user, network, resources }: PrepareOptions,
  functions: RunInSandbox[],
): ImageDescription {
  let image = network === undefined ? base : base.network(network)
  if (env) image = image.env(env)
  for (const [local, remote] of Object.entries(files)) image = image.copy(local, remote)
  if (workdir !== undefined) image = image.workdir(workdir)
  if (user !== undefined) image = image.user(user)
  for (const step of setup) {
    if (isCommand(step)) image = image.run(step)
    else {
      const call = functions.push(step.run) - 1
      const { key } = step
      image = image.with({ kind: 'function', key, call, ...(resources ? { resources } : {}) })
    }
  }
  return image
}

function isCommand(step: SetupStep): step is string | readonly string[] {
  return typeof step === 'string' || Array.isArray(step)
}

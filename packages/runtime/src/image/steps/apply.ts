/** One step over an image: another configuration, or one more layer. */
import { posix } from 'node:path'
import { type BuildStep, type ImageConfig, userName } from '@sandlot/protocol'
import type { BuildContext, BuiltImage } from '../build.ts'
import type { Image } from '../image.ts'
import { sourceInvalid } from '../image-error.ts'
import type { ImageTrees } from '../image-trees.ts'
import { writeTreeLayer } from '../tree-layer.ts'
import { findAccount, ROOT } from './account.ts'
import { CopiedTree } from './copied-tree.ts'
import { copyFromLayer, copyLayer } from './copy.ts'
import { expanded } from './expand.ts'
import { functionLayer } from './function.ts'
import type { OpenStepMachine } from './machine.ts'
import { runLayer } from './run.ts'
import { bytesOf, lookIn, walk } from './tree-path.ts'

export interface StepContext extends BuildContext {
  /** Where the step's layer goes. */
  readonly layerPath: string
  readonly trees: ImageTrees
  readonly openMachine: OpenStepMachine
  /** What a command given as text is given to. */
  readonly shell: readonly string[]
  /** The image of a source that a step copies from. */
  readonly sourceImage: (source: SourceOfCopy['source']) => Promise<Image>
}

export type StepOf<K extends BuildStep['kind']> = Extract<BuildStep, { kind: K }>
type SourceOfCopy = StepOf<'copyFrom'>

export async function applyStep(
  step: BuildStep,
  parent: Image,
  context: StepContext,
): Promise<BuiltImage> {
  switch (step.kind) {
    case 'run':
      return withLayer(parent, context, await runLayer(step, parent, context))
    case 'function':
      return withLayer(parent, context, await functionLayer(step, parent, context))
    case 'copy':
      return withLayer(parent, context, await copyLayer(placed(step, parent), parent, context))
    case 'copyFrom':
      return withLayer(parent, context, await copyFromLayer(placed(step, parent), parent, context))
    case 'workdir':
      return await workdir(step, parent, context)
    default:
      return { layers: parent.layers, config: changedConfig(step, parent.config) }
  }
}

/** A copy with its destination and owner as the image's variables have them. */
function placed<S extends StepOf<'copy'> | StepOf<'copyFrom'>>(step: S, { config }: Image): S {
  if (!step.expand) return step
  const { to, owner } = step
  return {
    ...step,
    to: expanded(to, config.env),
    ...(owner === undefined ? {} : { owner: expanded(owner, config.env) }),
  }
}

/** The configuration after a step that changes nothing else. */
function changedConfig(
  step: Exclude<BuildStep, StepOf<'run' | 'function' | 'copy' | 'copyFrom' | 'workdir'>>,
  config: ImageConfig,
): ImageConfig {
  switch (step.kind) {
    case 'env':
      return { ...config, env: { ...config.env, ...expandedEnv(step, config) } }
    case 'user':
      return { ...config, user: expandedUser(step, config) }
    case 'command':
      return withCommand(step, config)
    case 'labels':
      return { ...config, labels: { ...config.labels, ...step.labels } }
    case 'shell':
      return config
  }
}

function expandedUser({ user, expand }: StepOf<'user'>, { env }: ImageConfig): string {
  const found = expand ? expanded(user, env) : user
  const problem = userName.safeParse(found).error?.issues[0]
  if (problem === undefined) return found
  throw sourceInvalid(
    `The user ${JSON.stringify(found.slice(0, 64))} is ${problem.message}.`,
    'Look which variables the image has: start a sandbox from it.',
  )
}

/** A new entrypoint alone ends the command of the base: it was meant for another program. */
function withCommand(
  { entrypoint, command }: StepOf<'command'>,
  { entrypoint: before, ...config }: ImageConfig,
): ImageConfig {
  const starts = entrypoint ?? before ?? []
  const kept = entrypoint === undefined ? config.command : []
  return {
    ...config,
    command: command ?? kept,
    ...(starts.length > 0 ? { entrypoint: starts } : {}),
  }
}

function expandedEnv({ env, expand }: StepOf<'env'>, config: ImageConfig): ImageConfig['env'] {
  if (!expand) return env
  const entries = Object.entries(env).map(([name, value]) => [name, expanded(value, config.env)])
  return Object.fromEntries(entries)
}

/** The directory is made where it is missing, so that whatever runs in it can start. */
async function workdir(
  step: StepOf<'workdir'>,
  parent: Image,
  context: StepContext,
): Promise<BuiltImage> {
  const named = step.expand ? expanded(step.path, parent.config.env) : step.path
  const path = posix.resolve('/', parent.config.workdir, named)
  const below = await context.trees.read(parent.layers)
  const config = { ...parent.config, workdir: path }
  const isThere = walk(lookIn(below), bytesOf(path), { last: 'follow' }).inode !== undefined
  const account = isThere ? ROOT : await findAccount(below, parent.config.user)
  const tree = new CopiedTree({ below, account })
  tree.makeDirectory(bytesOf(path))
  if (tree.isEmpty) return { layers: parent.layers, config }
  const written = await writeTreeLayer(context.layerPath, tree.settled(), context.signal)
  return { ...withLayer(parent, context, written), config }
}

/** A step that changed no file has no layer. */
function withLayer(
  parent: Image,
  { layerPath }: StepContext,
  written: { readonly digest: string; readonly sizeBytes: number } | undefined,
): BuiltImage {
  const { layers, config } = parent
  if (!written) return { layers, config }
  const { digest, sizeBytes } = written
  return { layers: [...layers, { path: layerPath, digest, sizeBytes }], config }
}

/**
 * From a source to its image. Each base and each step has a key, is built by one process at a time, and is kept as an image of its
 * own: a chain of steps begins after the last one that is there.
 */
import type { BuildStep, ImageSource } from '@sandlot/protocol'
import type { BuildContext, BuiltImage, HasBlob, OpenBlob } from './build.ts'
import { buildDebian, type DebianOptions } from './debian.ts'
import { LayerTooLarge } from './erofs/block-file.ts'
import { LayerDamaged } from './erofs/read-tree.ts'
import { acquireFileLock } from './file-lock.ts'
import type { Image } from './image.ts'
import { diskFull, ImageError, imageUnknown, isDiskFull, sourceInvalid } from './image-error.ts'
import type { ImageFiles } from './image-files.ts'
import { ImageTrees } from './image-trees.ts'
import { joinedLayers } from './joined-layers.ts'
import { imageLimits } from './limits.ts'
import { checkBlobs, lastBuilt } from './needed-blobs.ts'
import { buildOci } from './oci.ts'
import type { Pins } from './pins.ts'
import { publishImage } from './publish.ts'
import { buildRegistry, type RegistryOptions } from './registry.ts'
import { type BuildRun, type BuildWait, SharedBuilds } from './shared-builds.ts'
import type { SourceOf } from './source.ts'
import { sourceKey, stepKeys } from './source-key.ts'
import { applyStep } from './steps/apply.ts'
import { describeStep } from './steps/describe.ts'
import type { OpenStepMachine } from './steps/machine.ts'
import { TarError } from './tar/header.ts'
import { buildTarImage } from './tar-image.ts'

export interface BuilderOptions {
  readonly files: ImageFiles
  readonly pins: Pins
  readonly openBlob: OpenBlob
  readonly hasBlob: HasBlob
  readonly debian: DebianOptions
  readonly registry: RegistryOptions
  readonly openMachine: OpenStepMachine
  readonly now: () => number
  /** Something was added. */
  readonly onPublished: () => void
}

/** One thing to be built under a key. */
interface Making {
  readonly key: string
  readonly source: ImageSource
  /** Only on the way to another image: nobody asked for it by itself. */
  readonly intermediate: boolean
  /** Build it though its key is there. */
  readonly again?: boolean
  readonly make: (context: BuildContext) => Promise<BuiltImage>
}

/** One step of a chain, over the image of those before it. */
interface StepAt {
  readonly step: BuildStep
  readonly index: number
  readonly source: SourceOf<'built'>
  readonly key: string
  readonly parent: Image
}

export class ImageBuilder {
  readonly #options: BuilderOptions
  readonly #builds = new SharedBuilds<Image>()
  readonly #trees = new ImageTrees()

  constructor(options: BuilderOptions) {
    this.#options = options
  }

  /** Of a source that is normalised and resolved. */
  async image(source: ImageSource, wait: BuildWait): Promise<Image> {
    await checkBlobs(source, { ...this.#options, signal: wait.signal })
    return await this.#image(source, wait)
  }

  async close(reason: unknown): Promise<void> {
    await this.#builds.close(reason)
  }

  async #image(source: ImageSource, wait: BuildWait): Promise<Image> {
    const { files } = this.#options
    if (source.kind === 'built') return await this.#built(source, wait)
    if (source.kind === 'id') {
      const found = await files.find(source.id)
      if (found) return found
      throw imageUnknown(source.id)
    }
    const key = sourceKey(source)
    const present = await files.findByKey(key)
    if (present) return present
    const make = (context: BuildContext) => this.#base(source, context)
    return await this.#share({ key, source, intermediate: false, make }, wait)
  }

  async #built(source: SourceOf<'built'>, wait: BuildWait): Promise<Image> {
    const { files, pins } = this.#options
    const keys = stepKeys(source)
    const total = keys.length
    let { done, image } = await lastBuilt(files, keys)
    if (image) files.touch(image.id)
    if (done < total && done > 0) wait.onLog?.(`steps 1 to ${done} of ${total} are built already`)
    image ??= await this.#image(source.base, wait)
    for (const [index, step] of source.steps.entries()) {
      if (index < done) continue
      using _pin = pins.hold(image.id)
      const number = `step ${index + 1} of ${total}`
      wait.onLog?.(`${number}: ${describeStep(step)}`)
      const at: StepAt = { step, index, source, key: keys[index] ?? '', parent: image }
      image = await this.#step(at, prefixed(wait, `[${index + 1}/${total}] `)).catch((error) => {
        throw inStep(error, number, step)
      })
    }
    return await this.#settled(image, source, keys.at(-1) ?? '', wait)
  }

  async #step({ step, index, source, key, parent }: StepAt, wait: BuildWait): Promise<Image> {
    const before = source.steps.slice(0, index)
    const shell = before.findLast((each) => each.kind === 'shell')?.command ?? DEFAULT_SHELL
    const make = (context: BuildContext) =>
      applyStep(step, parent, {
        ...context,
        layerPath: `${context.directory}/step.erofs`,
        trees: this.#trees,
        openMachine: this.#options.openMachine,
        shell,
        sourceImage: (from) => {
          const { signal, log, detail } = context
          return this.#image(from, { signal, onLog: log, onDetail: detail })
        },
      })
    const part: ImageSource = { ...source, steps: [...before, step] }
    return await this.#share({ key, source: part, intermediate: true, make }, wait)
  }

  /** What was asked for is to be seen in lists. */
  async #settled(
    image: Image,
    source: SourceOf<'built'>,
    key: string,
    wait: BuildWait,
  ): Promise<Image> {
    if (!image.intermediate) return image
    using _pin = this.#options.pins.hold(image.id)
    const { layers, config } = image
    const make = async () => ({ layers, config })
    return await this.#share({ key, source, intermediate: false, again: true, make }, wait)
  }

  async #share(making: Making, wait: BuildWait): Promise<Image> {
    const { key, source } = making
    const last = source.kind === 'built' ? source.steps.at(-1) : undefined
    // Whoever has more time for it must not share the end of one that has less.
    const timeout = last?.kind === 'run' ? ` ${last.timeout}` : ''
    const name = making.again ? `${key} settled` : `${key}${timeout}`
    return await this.#builds.run(name, wait, (run) => this.#once(making, run))
  }

  async #once(making: Making, run: BuildRun): Promise<Image> {
    const { files } = this.#options
    const { key, source } = making
    try {
      using _lock = await acquireFileLock(files.lockPath(key), run.signal)
      const present = making.again ? undefined : await files.findByKey(key)
      if (present) return present
      await using temporary = await files.temporary(key)
      const context = this.#context(temporary.path, run)
      const built = await this.#fitting(await making.make(context), context)
      run.signal.throwIfAborted()
      return await this.#publish(built, making, context)
    } catch (cause) {
      throw asImageError(cause, source, files.directory)
    }
  }

  /** With no more layers than a sandbox can have. */
  async #fitting(built: BuiltImage, { directory, signal, log }: BuildContext): Promise<BuiltImage> {
    const { layers, config } = built
    if (layers.length <= imageLimits.layersMax) return built
    const keep = imageLimits.layersKept
    log(`joining ${layers.length - keep + 1} layers into one`)
    const joining = { keep, path: `${directory}/joined.erofs`, trees: this.#trees, signal }
    return { layers: await joinedLayers(layers, joining), config }
  }

  async #publish(
    built: BuiltImage,
    { source, key, intermediate }: Making,
    { directory, signal }: BuildContext,
  ): Promise<Image> {
    const { files, now } = this.#options
    const publishing = { files, directory, source, intermediate, key, now, signal }
    const image = await publishImage(built, publishing)
    this.#options.onPublished()
    return image
  }

  async #base(source: ImageSource, context: BuildContext): Promise<BuiltImage> {
    switch (source.kind) {
      case 'debian':
        return await buildDebian(source, context, this.#options.debian)
      case 'oci':
        return await buildOci(source, context)
      case 'registry':
        return await buildRegistry(source, context, this.#options.registry)
      case 'directory':
      case 'tar':
        return await buildTarImage(source, context)
      default:
        throw new Error(`a source of kind ${source.kind} has no base of its own`)
    }
  }

  #context(directory: string, run: BuildRun): BuildContext {
    const tail: string[] = []
    return {
      directory,
      signal: run.signal,
      openBlob: this.#options.openBlob,
      logTail: () => [...tail],
      log: (line) => {
        tail.push(line)
        if (tail.length > imageLimits.logLinesKept) tail.shift()
        run.log(line)
      },
      detail: run.detail,
      callFunction: run.callFunction,
    }
  }
}

const DEFAULT_SHELL = ['/bin/sh', '-c']

function prefixed(wait: BuildWait, prefix: string): BuildWait {
  const { onLog, onDetail } = wait
  return {
    ...wait,
    onLog: (line) => onLog?.(prefix + line),
    onDetail: (line) => onDetail?.(prefix + line),
  }
}

/** Says which step failed; what is no fault of a step stays as it is. */
function inStep(error: unknown, number: string, step: BuildStep): unknown {
  if (!(error instanceof ImageError) || error.code === 'disk_full') return error
  const { code, message, hint, logTail, exitCode } = error
  return new ImageError(code, `${number} (${describeStep(step)}): ${message}`, {
    hint,
    logTail,
    ...(exitCode === undefined ? {} : { exitCode }),
    cause: error,
  })
}

function asImageError(cause: unknown, source: ImageSource, directory: string): unknown {
  if (isDiskFull(cause)) return diskFull(directory, cause)
  if (cause instanceof LayerDamaged) {
    return new ImageError('image_build_failed', `${cause.message}.`, {
      hint: 'Remove the image that has it (`sandlot images verify` names it), and build it again.',
      cause,
    })
  }
  if (!(cause instanceof TarError || cause instanceof LayerTooLarge)) return cause
  if (source.kind !== 'debian') {
    return sourceInvalid(
      `${cause.message}.`,
      'Give a tar (plain, gzip or zstd), packed again without what the message names.',
      cause,
    )
  }
  return new ImageError('image_build_failed', `mmdebstrap gave a bad archive: ${cause.message}.`, {
    hint: 'Build it again; if that fails too, look for a newer mmdebstrap.',
    cause,
  })
}

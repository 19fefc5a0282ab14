/** From a description to the source on the wire: contents become blobs, of which only those are sent that the daemon lacks. */
import { type BuildStep, type ImageSource, SandlotError } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { localStat, tarOf } from '../sandbox/tree-upload.ts'
import { blobOfFile, blobOfStream } from './blob.ts'
import type { ImageDescription } from './image.ts'
import { LocalContents } from './local-contents.ts'
import type { ImageBase, LocalStep } from './local-step.ts'

export interface SourceOptions extends Waiting {
  readonly onLog?: (line: string) => void
}

/**
 * Asks the daemon for something that begins with the source of a description.
 * @throws SandlotError when a path of this machine can't be read, or a Dockerfile is refused
 */
export async function withSource<T>(
  context: ClientContext,
  description: ImageDescription,
  options: SourceOptions,
  ask: (source: ImageSource) => Promise<T>,
): Promise<T> {
  await using contents = new LocalContents(context, waitingOf(options))
  const source = await sourceOf(contents, description, options)
  return await contents.supply(() => ask(source))
}

async function sourceOf(
  contents: LocalContents,
  { base, steps, policy }: ImageDescription,
  options: SourceOptions,
): Promise<ImageSource> {
  const begin = await baseSource(contents, base, options)
  if (steps.length === 0) return begin
  const built: BuildStep[] = []
  for (const step of steps) built.push(await wireStep(contents, step, options))
  const network = policy === undefined ? {} : { network: policy }
  return { kind: 'built', base: begin, steps: built, ...network }
}

async function wireStep(
  contents: LocalContents,
  step: LocalStep,
  options: SourceOptions,
): Promise<BuildStep> {
  if (step.kind === 'copyFrom') {
    return { ...step, source: await sourceOf(contents, step.source, options) }
  }
  // A time or a size with its unit is read by the daemon.
  if (step.kind !== 'copy') return step as BuildStep
  const { files, ...rest } = step
  const { bytes, file, content } = await files.tar()
  const blob = await contents.hold(await blobOfStream(bytes, waitingOf(options)))
  const known = content ? { content: content() } : {}
  return { ...rest, blob, ...known, ...(file ? { file } : {}) }
}

async function baseSource(
  contents: LocalContents,
  base: ImageBase,
  options: SourceOptions,
): Promise<ImageSource> {
  switch (base.kind) {
    case 'debian':
    case 'registry':
    case 'id':
      return base
    case 'empty':
      return { kind: 'tar', blob: await contents.hold(await blobOfStream(emptyTar())) }
    case 'dockerfile': {
      // Its parser is loaded by those alone who have a Dockerfile.
      const { readDockerfile } = await import('./dockerfile/dockerfile.ts')
      const note = options.onLog ?? (() => {})
      const description = await readDockerfile(base.path, base.options, note)
      return await sourceOf(contents, description, options)
    }
    default:
      return await fileSource(contents, base, waitingOf(options))
  }
}

async function fileSource(
  contents: LocalContents,
  { kind, path }: Extract<ImageBase, { path: string; kind: 'directory' | 'tar' | 'oci' }>,
  waiting: Waiting,
): Promise<ImageSource> {
  const found = await localStat(path)
  if (found.isDirectory()) {
    if (kind === 'tar') {
      throw new SandlotError('invalid_request', `${path} is a directory`, {
        hint: 'Take it as a directory: Image.directory(path), or directory:PATH on the command line.',
      })
    }
    return { kind, blob: await contents.hold(await blobOfStream(tarOf(path), waiting)) }
  }
  if (kind === 'directory') {
    throw new SandlotError('invalid_request', `${path} is not a directory`, {
      hint: 'Take a tar file as one: Image.tar(path), or tar:PATH on the command line.',
    })
  }
  if (!found.isFile()) {
    throw new SandlotError('invalid_request', `${path} is neither a file nor a directory`, {
      hint: 'It is read twice: write what it gives into a file, and name that.',
    })
  }
  return { kind, blob: await contents.hold(await blobOfFile(path, waiting)) }
}

/** Two blocks of zeros: an archive of nothing. */
async function* emptyTar(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(1_024)
}

function waitingOf({ signal }: SourceOptions): Waiting {
  return signal ? { signal } : {}
}

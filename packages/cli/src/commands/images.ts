/** `sandlot images …`. */
import { formatSize, type ImageSource, SandlotError } from '@sandlot/protocol'
import { Image, type ImageDescription, Sandlot } from 'sandlot'
import { counted, describeRemoved } from '../output/removed.ts'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { descriptionOf, type SourceKind } from './from.ts'
import { interruption } from './interruption.ts'
import { checkDuration, given, pairs } from './options.ts'

export async function listImagesCommand({ json }: { json?: boolean } = {}): Promise<void> {
  await using client = new Sandlot()
  const images = await Array.fromAsync(client.images.list())
  if (json) return printJson(images)
  if (images.length === 0) return note('no images')
  const rows = images.map(({ id, source, layers, sizeBytes, createdAtMs }) => [
    id,
    String(layers.length),
    formatSize(sizeBytes),
    new Date(createdAtMs).toISOString(),
    describe(source),
  ])
  printLine(formatTable(['ID', 'LAYERS', 'SIZE', 'CREATED', 'FROM'], rows))
}

export interface BuildImageOptions {
  readonly context?: string
  readonly target?: string
  /** `NAME=VALUE` each. */
  readonly arg?: readonly string[]
  readonly timeout?: string
  readonly verbose?: boolean
}

/** Builds from Debian packages, from a registry, or from a path of this machine. Prints the id. */
export async function buildImageCommand(
  kind: 'debian' | SourceKind,
  what: string,
  packages: readonly string[],
  options: BuildImageOptions = {},
): Promise<void> {
  const described = describedBy(kind, what, packages, options)
  await using client = new Sandlot()
  using interrupted = interruption()
  const { id } = await client.images.build(described, {
    onLog: note,
    ...(options.verbose ? { onDetail: note } : {}),
    signal: interrupted.signal,
  })
  printLine(id)
}

function describedBy(
  kind: 'debian' | SourceKind,
  what: string,
  packages: readonly string[],
  { context, target, arg = [], timeout }: BuildImageOptions,
): ImageDescription {
  if (kind !== 'debian' && packages.length > 0) {
    throw new SandlotError('invalid_request', `${kind} takes no packages: ${packages.join(' ')}`, {
      hint: 'Install them by a Dockerfile, or in a script by Image.….apt().',
    })
  }
  if (kind === 'dockerfile') {
    const args = pairs(arg, '--arg')
    checkDuration(timeout, '--timeout')
    return Image.dockerfile(what, { ...given({ context, target, timeout }), args })
  }
  const [option] = Object.keys(given({ context, target, arg: arg[0], timeout }))
  if (option !== undefined) {
    throw new SandlotError('invalid_request', `--${option} means nothing to ${kind}`, {
      hint: 'It is for `sandlot images build dockerfile PATH`.',
    })
  }
  return kind === 'debian' ? Image.debian(what, packages) : descriptionOf(kind, what)
}

export async function removeImageCommand(id: string): Promise<void> {
  await using client = new Sandlot()
  note(describeRemoved(await client.images.remove(id), id))
}

function describe(source: ImageSource): string {
  switch (source.kind) {
    case 'debian':
      return `debian ${source.suite} ${source.packages.join(' ')}`
    case 'registry':
      return source.reference
    case 'id':
      return source.id
    case 'built': {
      const count = source.steps.length
      return `${describe(source.base)} + ${counted(count, 'step', 'steps')}`
    }
    default:
      return `${source.kind} ${source.blob}`
  }
}

/** `sandlot images …`. */
import { formatSize, type ImageSource } from '@sandlot/protocol'
import { Image, type ImageDescription, Sandlot } from 'sandlot'
import { formatTable } from '../output/table.ts'
import { note, printLine } from '../output/terminal.ts'
import { interruption } from './interruption.ts'

export async function listImagesCommand(): Promise<void> {
  await using client = new Sandlot()
  const rows: string[][] = []
  for await (const { id, source, layers, sizeBytes, createdAtMs } of client.images.list()) {
    rows.push([
      id,
      String(layers.length),
      formatSize(sizeBytes),
      new Date(createdAtMs).toISOString(),
      describe(source),
    ])
  }
  printLine(formatTable(['ID', 'LAYERS', 'SIZE', 'CREATED', 'FROM'], rows))
}

/** Builds from Debian packages, from a registry, or from a path of this machine. Prints the id. */
export async function buildImageCommand(
  kind: string,
  what: string,
  packages: readonly string[],
): Promise<void> {
  await using client = new Sandlot()
  using interrupted = interruption()
  const described = describedBy(kind, what, packages)
  const { id } = await client.images.build(described, { onLog: note, signal: interrupted.signal })
  printLine(id)
}

function describedBy(kind: string, what: string, packages: readonly string[]): ImageDescription {
  switch (kind) {
    case 'debian':
      return Image.debian(what, packages)
    case 'registry':
      return Image.registry(what)
    case 'dockerfile':
      return Image.dockerfile(what)
    case 'tar':
      return Image.tar(what)
    case 'oci':
      return Image.oci(what)
    default:
      return Image.directory(what)
  }
}

export async function removeImageCommand(id: string): Promise<void> {
  await using client = new Sandlot()
  await client.images.remove(id)
}

function describe(source: ImageSource): string {
  switch (source.kind) {
    case 'debian':
      return `debian ${source.suite} ${source.packages.join(' ')}`
    case 'registry':
      return source.reference
    case 'id':
      return source.id
    case 'built':
      return `${describe(source.base)} + ${source.steps.length} steps`
    default:
      return `${source.kind} ${source.blob}`
  }
}

/** An OCI layout becomes one EROFS layer for each of its layers. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type ImageConfig, kernelText } from '@sandlot/protocol'
import { decompressed, untilAborted, verifiedBlob } from './blob-stream.ts'
import type { BuildContext, BuiltImage } from './build.ts'
import type { DirectoryInode } from './erofs/inode.ts'
import { defaultImageConfig, type ImageLayer } from './image.ts'
import { sourceInvalid, tooManyEntries } from './image-error.ts'
import { imageLimits } from './limits.ts'
import { type Descriptor, type OciConfig, OciLayout } from './oci-layout.ts'
import type { SourceOf } from './source.ts'
import { writeTarLayer } from './tar-layer.ts'
import { mergedOver } from './whiteouts.ts'

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/** As the OCI names it. */
export const machineArchitecture = ARCHITECTURES[process.arch] ?? process.arch

export async function buildOci(
  source: SourceOf<'oci'>,
  context: BuildContext,
): Promise<BuiltImage> {
  const blobs = join(context.directory, 'blobs')
  await mkdir(blobs)
  const stream = decompressed(verifiedBlob(source.blob, context.openBlob, context.signal))
  return await buildOciLayout(await OciLayout.unpack(stream, blobs), context)
}

/** The one image of a layout that fits this machine. */
export async function buildOciLayout(
  layout: OciLayout,
  context: BuildContext,
): Promise<BuiltImage> {
  const platform = { os: 'linux', architecture: machineArchitecture } as const
  const { manifest, config } = await layout.find(platform)
  const layers: ImageLayer[] = []
  let below: DirectoryInode | undefined
  let entries = 0
  for (const [index, descriptor] of manifest.layers.entries()) {
    const path = join(context.directory, `${index}.erofs`)
    context.log(`layer ${index + 1} of ${manifest.layers.length}: ${descriptor.digest}`)
    const tar = decompressed(untilAborted(layerBytes(layout, descriptor), context.signal))
    const written = await writeTarLayer(tar, {
      path,
      ociWhiteouts: true,
      signal: context.signal,
      onLog: context.log,
      ...(below && { below }),
    })
    entries += written.inodes
    if (entries > imageLimits.imageEntriesMax) throw tooManyEntries()
    if (below && written.root.children.size === 0) continue
    layers.push({ path, digest: written.digest, sizeBytes: written.sizeBytes })
    liesIn(written.root, path)
    below = mergedOver(written.root, below)
  }
  return { layers, config: imageConfig(config) }
}

/** Says where the contents of a written layer are, for those above that have some of its files once more. */
function liesIn(directory: DirectoryInode, layer: string): void {
  for (const child of directory.children.values()) {
    if (child.kind === 'directory') liesIn(child, layer)
    else if (child.kind === 'file') child.layer = layer
  }
}

function layerBytes(layout: OciLayout, descriptor: Descriptor): AsyncIterable<Uint8Array> {
  if (
    descriptor.mediaType?.includes('nondistributable') ||
    descriptor.mediaType?.includes('encrypted')
  ) {
    throw sourceInvalid(
      `The layer ${descriptor.digest} is of the kind ${descriptor.mediaType}.`,
      'Only plain, gzip and zstd layers that are part of the layout can be used.',
    )
  }
  return layout.read(descriptor.digest)
}

function imageConfig(oci: OciConfig): ImageConfig {
  const config = oci.config ?? {}
  const env = Object.fromEntries(
    (config.Env ?? []).flatMap((line) => {
      const equals = line.indexOf('=')
      return equals > 0 ? [[line.slice(0, equals), line.slice(equals + 1)]] : []
    }),
  )
  const workdir = config.WorkingDir || defaultImageConfig.workdir
  const entrypoint = config.Entrypoint ?? []
  const command = config.Cmd ?? []
  const User = config.User ? [config.User] : []
  const starts = { Entrypoint: entrypoint, Cmd: command }
  checkTexts({ Env: config.Env ?? [], WorkingDir: [workdir], User, ...starts })
  return {
    env: { ...defaultImageConfig.env, ...env },
    workdir: workdir.startsWith('/') ? workdir : `/${workdir}`,
    user: config.User || defaultImageConfig.user,
    command,
    ...(entrypoint.length > 0 ? { entrypoint } : {}),
    labels: config.Labels ?? {},
  }
}

/** Every command of every sandbox of the image would fail over them. */
function checkTexts(fields: Readonly<Record<string, readonly string[]>>): void {
  for (const [field, texts] of Object.entries(fields)) {
    for (const text of texts) {
      const wrong = kernelText.safeParse(text).error?.issues[0]
      if (wrong === undefined) continue
      throw sourceInvalid(
        `${field} of the image's configuration ${wrong.message}: ${JSON.stringify(text.slice(0, 200))}`,
        'Correct the configuration of the image, and build the layout again.',
      )
    }
  }
}

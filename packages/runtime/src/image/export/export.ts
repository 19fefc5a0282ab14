/** An image as a file that other programs read: an OCI archive with its layers, or one tar of all that is seen. */
import { createHash } from 'node:crypto'
import type { ImageConfig } from '@sandlot/protocol'
import { readErofsTree } from '../erofs/read-tree.ts'
import type { Image, ImageLayer } from '../image.ts'
import type { ImageTrees } from '../image-trees.ts'
import { machineArchitecture } from '../oci.ts'
import { tarFile, tarOfTree } from './tar-writer.ts'

export const EXPORT_FORMATS = ['oci', 'tar'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

const TYPES = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
} as const

export function exported(
  image: Image,
  format: ExportFormat,
  trees: ImageTrees,
): AsyncGenerator<Uint8Array> {
  return format === 'oci' ? ociArchive(image) : flat(image, trees)
}

async function* flat(image: Image, trees: ImageTrees): AsyncGenerator<Uint8Array> {
  yield* tarOfTree(await trees.read(image.layers), { whiteouts: false })
}

interface Blob {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly open: () => AsyncIterable<Uint8Array>
}

/** Each layer is written twice: its name is its digest, and stands before it. */
async function* ociArchive(image: Image): AsyncGenerator<Uint8Array> {
  const layers: Blob[] = []
  for (const layer of image.layers) {
    layers.push(await blob(TYPES.layer, () => layerTar(layer)))
  }
  const config = await json(TYPES.config, configOf(image.config, layers))
  const manifest = await json(TYPES.manifest, {
    schemaVersion: 2,
    mediaType: TYPES.manifest,
    config: descriptor(config),
    layers: layers.map(descriptor),
  })
  const platform = { os: 'linux', architecture: machineArchitecture }
  const manifests = [{ ...descriptor(manifest), platform }]
  yield* textFile('oci-layout', { imageLayoutVersion: '1.0.0' })
  const all = new Map([...layers, config, manifest].map((each) => [each.digest, each]))
  for (const { digest, size, open } of all.values()) {
    yield* tarFile(`blobs/${digest.replace(':', '/')}`, size, open())
  }
  yield* textFile('index.json', { schemaVersion: 2, mediaType: TYPES.index, manifests })
  yield Buffer.alloc(1024)
}

async function* layerTar(layer: ImageLayer): AsyncGenerator<Uint8Array> {
  yield* tarOfTree(await readErofsTree(layer.path), { whiteouts: true })
}

function configOf(config: ImageConfig, layers: readonly Blob[]): unknown {
  const { env, workdir, user, entrypoint, command, labels } = config
  return {
    os: 'linux',
    architecture: machineArchitecture,
    config: {
      Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      WorkingDir: workdir,
      User: user,
      ...(entrypoint ? { Entrypoint: entrypoint } : {}),
      ...(command.length > 0 ? { Cmd: command } : {}),
      Labels: labels,
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) },
  }
}

async function json(mediaType: string, value: unknown): Promise<Blob> {
  const bytes = Buffer.from(JSON.stringify(value))
  return await blob(mediaType, () => once(bytes))
}

async function blob(mediaType: string, open: Blob['open']): Promise<Blob> {
  const hash = createHash('sha256')
  let size = 0
  for await (const bytes of open()) {
    hash.update(bytes)
    size += bytes.length
  }
  return { mediaType, digest: `sha256:${hash.digest('hex')}`, size, open }
}

function descriptor({ mediaType, digest, size }: Blob) {
  return { mediaType, digest, size }
}

function textFile(path: string, value: unknown): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(JSON.stringify(value))
  return tarFile(path, bytes.length, once(bytes))
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

import { createHash } from 'node:crypto'
import type { ImageConfig, ImageSource } from '@sandlot/protocol'
import type { Layer } from '../driver.ts'

/** An image's root file system and how its commands run. Immutable; the same content has the same id. */
export interface Image {
  /** `im_` + 20 characters of `[a-z0-9]`, derived from the digest. */
  readonly id: string
  /** `sha256:…` over the layers' digests and the configuration. */
  readonly digest: string
  /** Bottom first. */
  readonly layers: readonly ImageLayer[]
  readonly config: ImageConfig
  /** Of all layers together. Layers may be shared with other images. */
  readonly sizeBytes: number
  /** Milliseconds since 1970. */
  readonly createdAtMs: number
  /** What it was first built from. */
  readonly source: ImageSource
  /** A step's result on the way to another image: nobody asked for it by itself. */
  readonly intermediate?: boolean
  /** The image that this one is a form of, with fewer layers. */
  readonly joinedOf?: string
}

export interface ImageLayer extends Layer {
  readonly sizeBytes: number
}

/** What holds where a source says nothing. */
export const defaultImageConfig: ImageConfig = {
  env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  workdir: '/',
  user: 'root',
  command: [],
  labels: {},
}

export function imageDigest(layers: readonly Layer[], config: ImageConfig): string {
  const sorted = {
    layers: layers.map((layer) => layer.digest),
    env: sortedEntries(config.env),
    workdir: config.workdir,
    user: config.user,
    command: config.command,
    labels: sortedEntries(config.labels),
    ...(config.entrypoint ? { entrypoint: config.entrypoint } : {}),
  }
  return `sha256:${createHash('sha256').update(JSON.stringify(sorted)).digest('hex')}`
}

export function imageId(digest: string): string {
  const value = BigInt(`0x${digest.slice('sha256:'.length)}`)
  return `im_${value.toString(36).padStart(50, '0').slice(-20)}`
}

function sortedEntries(record: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1))
}

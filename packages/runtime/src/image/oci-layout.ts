/**
 * An OCI image layout, unpacked from its tar: every blob in a file named after its digest, checked on the way; and the way
 * from its index to the one image for this machine.
 */
import { createReadStream } from 'node:fs'
import { open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { RUNTIME_LIMITS } from '../limits.ts'
import { verified } from './blob-stream.ts'
import { sourceInvalid } from './image-error.ts'
import { imageLimits } from './limits.ts'
import { readTar, type TarEntry } from './tar/reader.ts'

const digestSchema = z.string().regex(/^sha256:[0-9a-f]{64}$/)

const descriptorSchema = z.object({
  mediaType: z.string().optional(),
  digest: digestSchema,
  size: z.number().int().nonnegative(),
  platform: z.object({ os: z.string(), architecture: z.string() }).optional(),
})
export type Descriptor = z.infer<typeof descriptorSchema>

const indexSchema = z.object({ manifests: z.array(descriptorSchema) })

const manifestSchema = z.object({
  config: descriptorSchema,
  layers: z.array(descriptorSchema).min(1).max(RUNTIME_LIMITS.layersMax),
})
export type Manifest = z.infer<typeof manifestSchema>

const strings = z.array(z.string()).nullish()
const configSchema = z.object({
  os: z.string(),
  architecture: z.string(),
  config: z
    .object({
      Env: strings,
      WorkingDir: z.string().nullish(),
      User: z.string().nullish(),
      Entrypoint: strings,
      Cmd: strings,
      Labels: z.record(z.string(), z.string()).nullish(),
    })
    .nullish(),
})
export type OciConfig = z.infer<typeof configSchema>

export interface Platform {
  readonly os: 'linux'
  readonly architecture: string
}

/** Indexes inside indexes, as some tools write them. */
const INDEX_DEPTH_MAX = 3

export class OciLayout {
  readonly #directory: string
  /** Where the blobs lie, named by their hexadecimal digits. */
  readonly #blobs: string
  readonly #digests = new Set<string>()

  private constructor(directory: string, blobs: string) {
    this.#directory = directory
    this.#blobs = blobs
  }

  /** A layout that a trusted program of this machine wrote: its blobs are what their names say. */
  static async at(directory: string): Promise<OciLayout> {
    const layout = new OciLayout(directory, join(directory, 'blobs', 'sha256'))
    for (const name of await readdir(layout.#blobs)) layout.#digests.add(`sha256:${name}`)
    return layout
  }

  /** Reads the whole tar. `directory` must be empty. */
  static async unpack(chunks: AsyncIterable<Uint8Array>, directory: string): Promise<OciLayout> {
    const layout = new OciLayout(directory, directory)
    for await (const entry of readTar(chunks)) {
      if (entry.type === 'file') await layout.#take(entry)
    }
    return layout
  }

  /** The image for a platform. Fails with `image_source_invalid` when there is none, or more than one. */
  async find(platform: Platform): Promise<{ manifest: Manifest; config: OciConfig }> {
    const index = parsed(indexSchema, await this.#document('index.json'), 'index.json')
    const candidates = await this.#manifests(index.manifests, platform, 1)
    const fitting: { manifest: Manifest; config: OciConfig }[] = []
    for (const digest of new Set(candidates)) {
      const manifest = parsed(manifestSchema, await this.#blobDocument(digest), digest)
      const config = await this.#config(manifest.config.digest)
      if (config && fits(config, platform)) fitting.push({ manifest, config })
    }
    const [found, ...others] = fitting
    if (found && others.length === 0) return found
    throw sourceInvalid(
      `The OCI layout has ${fitting.length} images for ${platform.os}/${platform.architecture}.`,
      'Pack a layout with exactly one image for this machine.',
    )
  }

  /** The bytes of a blob. Fails when the layout lacks it. */
  read(digest: string): AsyncIterable<Uint8Array> {
    this.#mustHave(digest)
    return createReadStream(this.#path(digest), { highWaterMark: 1024 * 1024 })
  }

  async #take(entry: TarEntry): Promise<void> {
    const path = entry.path.replace(/^(\.\/)+/, '')
    if (path === 'index.json') {
      if (entry.sizeBytes > imageLimits.ociDocumentBytesMax) throw tooLarge(path)
      await this.#write('index.json', entry.content)
      return
    }
    const hex = /^blobs\/sha256\/([0-9a-f]{64})$/.exec(path)?.[1]
    if (hex === undefined) return
    const digest = `sha256:${hex}`
    if (this.#digests.has(digest)) return
    if (this.#digests.size === imageLimits.ociBlobsMax) {
      throw sourceInvalid(
        `The OCI layout has more than ${imageLimits.ociBlobsMax} blobs.`,
        'Pack a layout with one image alone.',
      )
    }
    await this.#write(hex, verified(entry.content, digest))
    this.#digests.add(digest)
  }

  async #write(name: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    await using file = await open(join(this.#directory, name), 'w', 0o600)
    for await (const chunk of content) await file.writeFile(chunk)
  }

  async #manifests(
    descriptors: readonly Descriptor[],
    platform: Platform,
    depth: number,
  ): Promise<string[]> {
    const found: string[] = []
    for (const descriptor of descriptors) {
      if (descriptor.platform && !fits(descriptor.platform, platform)) continue
      const document = await this.#blobDocument(descriptor.digest)
      const index = indexSchema.safeParse(document)
      if (!index.success) found.push(descriptor.digest)
      else if (depth < INDEX_DEPTH_MAX) {
        found.push(...(await this.#manifests(index.data.manifests, platform, depth + 1)))
      }
    }
    return found
  }

  /** Undefined when it is no image's configuration: layouts also hold signatures and the like. */
  async #config(digest: string): Promise<OciConfig | undefined> {
    return configSchema.safeParse(await this.#blobDocument(digest)).data
  }

  async #blobDocument(digest: string): Promise<unknown> {
    this.#mustHave(digest)
    return await this.#document(digest.slice('sha256:'.length), this.#blobs)
  }

  async #document(name: string, directory = this.#directory): Promise<unknown> {
    const path = join(directory, name)
    await using file = await open(path).catch((cause) => {
      throw sourceInvalid(`The OCI layout has no ${name}.`, 'Pack the whole layout again.', cause)
    })
    if ((await file.stat()).size > imageLimits.ociDocumentBytesMax) throw tooLarge(name)
    try {
      return JSON.parse(await readFile(file, 'utf8'))
    } catch (cause) {
      throw sourceInvalid(`${name} of the OCI layout is no JSON.`, 'Pack it again.', cause)
    }
  }

  #mustHave(digest: string): void {
    if (this.#digests.has(digest)) return
    throw sourceInvalid(`The OCI layout lacks the blob ${digest}.`, 'Pack the whole layout again.')
  }

  #path(digest: string): string {
    return join(this.#blobs, digest.slice('sha256:'.length))
  }
}

function fits(found: { os: string; architecture: string }, platform: Platform): boolean {
  return found.os === platform.os && found.architecture === platform.architecture
}

function parsed<T>(schema: z.ZodType<T>, document: unknown, name: string): T {
  const result = schema.safeParse(document)
  if (result.success) return result.data
  const issue = result.error.issues[0]
  throw sourceInvalid(
    `${name} of the OCI layout is not as expected: ${issue?.path.join('.')} ${issue?.message}.`,
    'Layers must be named by sha256; docker archives without an index.json are not supported.',
  )
}

function tooLarge(name: string): Error {
  return sourceInvalid(
    `${name} of the OCI layout is larger than ${imageLimits.ociDocumentBytesMax} bytes.`,
    'Pack a layout with one image alone.',
  )
}

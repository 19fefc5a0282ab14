import { z } from 'zod'
import { buildStepOf } from './build-step.ts'
import { functionLine } from './function-call.ts'
import { idOf } from './ids.ts'
import { LIMITS } from './limits.ts'
import { type NetworkPolicy, networkPolicy } from './network.ts'
import { sizeBytes } from './quantity.ts'
import { startPoint } from './start-point.ts'

const debianName = z.string().regex(/^[a-z0-9][a-z0-9+.-]*$/, 'not the name of a Debian package')

/** Where the root file system of a build begins. Contents travel as blobs: no request names a path of the daemon's host. */
const baseSources = [
  z
    .object({
      kind: z.literal('debian'),
      suite: z.string().regex(/^[a-z][a-z0-9-]*$/, 'not the name of a Debian suite'),
      packages: z.array(debianName).max(1_000),
    })
    .strict(),
  /** A directory of the client, as a tar. */
  z.object({ kind: z.literal('directory'), blob: z.string() }).strict(),
  z.object({ kind: z.literal('tar'), blob: z.string() }).strict(),
  /** An OCI image layout, as a tar. */
  z.object({ kind: z.literal('oci'), blob: z.string() }).strict(),
  /** An image of a registry: `python:3.12-slim`, `ghcr.io/owner/name@sha256:…`. A tag is resolved to its digest first. */
  z.object({ kind: z.literal('registry'), reference: z.string().min(1).max(512) }).strict(),
  /** An image, a snapshot or a template that the daemon has, by its id or name. */
  z.object({ kind: z.literal('id'), id: startPoint }).strict(),
] as const

/** A base, and the steps over it: `docs/decisions/0005`. */
const builtSource = z
  .object({
    kind: z.literal('built'),
    get base(): z.ZodType<ImageSource> {
      return imageSource
    },
    get steps(): z.ZodArray<z.ZodType<BuildStep>> {
      return z.array(buildStep).max(LIMITS.buildSteps)
    },
    /** What a `run` step reaches unless it says otherwise. Default: `packages`. */
    network: networkPolicy.optional(),
  })
  .strict()

export type ImageSource =
  | z.infer<(typeof baseSources)[number]>
  | {
      readonly kind: 'built'
      readonly base: ImageSource
      readonly steps: readonly BuildStep[]
      readonly network?: NetworkPolicy | undefined
    }

export const imageSource: z.ZodType<ImageSource> = z.discriminatedUnion('kind', [
  ...baseSources,
  builtSource,
])

const buildStep = buildStepOf(z.lazy(() => imageSource))
export type BuildStep = z.infer<typeof buildStep>

/** Environment, working directory, user and start command (`entrypoint`, then `command`) that an image brings. */
export const imageConfig = z.object({
  env: z.record(z.string(), z.string()),
  workdir: z.string(),
  user: z.string(),
  command: z.array(z.string()),
  /** Never empty. */
  entrypoint: z.array(z.string()).optional(),
  labels: z.record(z.string(), z.string()),
})
export type ImageConfig = z.infer<typeof imageConfig>

export const imageView = z.object({
  id: idOf('image'),
  digest: z.string(),
  source: imageSource,
  layers: z.array(z.object({ digest: z.string(), sizeBytes: z.number() })),
  config: imageConfig,
  sizeBytes: z.number(),
  createdAtMs: z.number(),
  lastUsedAtMs: z.number().optional(),
})
export type ImageView = z.infer<typeof imageView>

/** `POST /v1/images` answers with these, one JSON value a line, the last one `done` or `error`. */
export const imageBuildLine = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('log'), line: z.string() }),
  z.object({ kind: z.literal('detail'), line: z.string() }),
  functionLine,
  z.object({ kind: z.literal('done'), image: imageView }),
  z.object({ kind: z.literal('error'), error: z.unknown() }),
])

/** An OCI archive with the image's layers, or one tar of all its files. */
export const IMAGE_EXPORT_FORMATS = ['oci', 'tar'] as const

/** `POST /v1/images/:id/verify`: none where all is well. */
export const imageVerification = z.object({
  problems: z.array(z.object({ digest: z.string(), problem: z.enum(['missing', 'damaged']) })),
})
export type ImageVerification = z.infer<typeof imageVerification>

/** `POST /v1/images/prune`. Nothing that is in use is removed. */
export const imagesPrune = z
  .object({
    /**
     * `intermediate`: results of steps that nobody asked for by themselves. `all`: images too, the longest unused first, until no
     * more than `keep` is left.
     */
    what: z.enum(['intermediate', 'all']),
    /** Default 0: everything goes. */
    keep: sizeBytes.optional(),
  })
  .strict()
export type ImagesPrune = z.input<typeof imagesPrune>

/** What was removed. A layer that an image has that stays takes its room on. */
export const imagesRemoved = z.object({
  /** Ids. */
  removed: z.array(z.string()),
  freedBytes: z.number(),
})
export type ImagesRemoved = z.infer<typeof imagesRemoved>

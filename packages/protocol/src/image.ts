import { z } from 'zod'
import { idOf } from './ids.ts'

const debianName = z.string().regex(/^[a-z0-9][a-z0-9+.-]*$/, 'not the name of a Debian package')

/** Where an image comes from. Contents travel as blobs: no request names a path of the daemon's host. */
export const imageSource = z.discriminatedUnion('kind', [
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
])
export type ImageSource = z.infer<typeof imageSource>

/** Environment, working directory, user and start command that an image brings. */
export const imageConfig = z.object({
  env: z.record(z.string(), z.string()),
  workdir: z.string(),
  user: z.string(),
  command: z.array(z.string()),
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
})
export type ImageView = z.infer<typeof imageView>

/** `POST /v1/images` answers with these, one JSON value a line, the last one `done` or `error`. */
export const imageBuildLine = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('log'), line: z.string() }),
  z.object({ kind: z.literal('done'), image: imageView }),
  z.object({ kind: z.literal('error'), error: z.unknown() }),
])

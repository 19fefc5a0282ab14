/** From what a user names to the id of an image that the daemon has. */
import { type ImageView, imageBuildLine, SandlotError } from '@sandlot/protocol'
import type { ClientContext } from '../connection/context.ts'
import { type LogOptions, loggedWork } from '../connection/logged-work.ts'
import { ImageDescription } from './image.ts'
import { withSource } from './source.ts'

/**
 * Where a sandbox begins: an id; a snapshot or a template by its name (`'snapshot:NAME'`, `'template:NAME'`, or the name alone where
 * one has it); a description that is built first; or anything the daemon gave that has an id.
 */
export type ImageLike = string | ImageDescription | { readonly id: string }

export type BuildOptions = LogOptions

/** Whether it has to be built first, which may take minutes. */
export function isDescribed(from: ImageLike): from is ImageDescription {
  return from instanceof ImageDescription
}

/** The id or name of what a sandbox is started from; builds it when it is only described. */
export async function resolveImage(
  context: ClientContext,
  from: ImageLike,
  options: BuildOptions = {},
): Promise<string> {
  if (typeof from === 'string') return from
  if (typeof from !== 'object' || from === null) {
    throw new SandlotError('invalid_request', `from: ${from} is nothing to start from`, {
      hint: "Give `from` an id, a name such as 'snapshot:NAME', or a description such as Image.debian('bookworm', ['python3']).",
    })
  }
  if ('id' in from) return from.id
  return (await buildImage(context, from, options)).id
}

/** Builds an image, or finds the one of the same content. Throws `image_build_failed` with the last lines of the log. */
export async function buildImage(
  context: ClientContext,
  description: ImageDescription,
  options: BuildOptions = {},
): Promise<ImageView> {
  return await withSource(context, description, options, (json) =>
    loggedWork(context, 'buildImage', json, options, (line) => {
      const news = imageBuildLine.parse(line)
      return news.kind === 'done' ? { kind: 'done', value: news.image } : news
    }),
  )
}

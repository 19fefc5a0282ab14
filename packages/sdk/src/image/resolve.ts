/** From what a user names to the id of an image that the daemon has. */
import {
  errorEnvelope,
  type ImageSource,
  type ImageView,
  imageBuildLine,
  SandlotError,
} from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { isOutage } from '../connection/failure.ts'
import type { ImageDescription } from './image.ts'
import { sourceOf } from './source.ts'

/** An image that was built, its description, or its id. */
export type ImageLike = string | ImageDescription | ImageView

export interface BuildOptions extends Waiting {
  /** Gets each line of the build log as it comes. */
  readonly onLog?: (line: string) => void
}

/** The id of the image; builds it when it is only described. */
export async function resolveImage(
  context: ClientContext,
  from: ImageLike,
  options: BuildOptions = {},
): Promise<string> {
  if (typeof from === 'string') return from
  if ('id' in from) return from.id
  return (await buildImage(context, from, options)).id
}

/**
 * Builds an image, or finds the one of the same content. Throws `image_build_failed` with the last lines of the log. A build that
 * was cut off by an outage is asked for again: what is built already is found.
 */
export async function buildImage(
  context: ClientContext,
  description: ImageDescription,
  options: BuildOptions = {},
): Promise<ImageView> {
  const { signal } = options
  const json = await sourceOf(context, description, options)
  const outage = context.connection.outage()
  for (;;) {
    try {
      return await buildOnce(context, json, options, () => outage.over())
    } catch (error) {
      if (!isOutage(error)) throw error
      await outage.wait(error, signal)
    }
  }
}

async function buildOnce(
  { http }: ClientContext,
  json: ImageSource,
  { signal, onLog }: BuildOptions,
  onNews: () => void,
): Promise<ImageView> {
  for await (const line of linesOf(http.bytes('buildImage', { json, signal }))) {
    onNews()
    const news = imageBuildLine.parse(JSON.parse(line))
    if (news.kind === 'log') onLog?.(news.line)
    else if (news.kind === 'done') return news.image
    else throw SandlotError.fromEnvelope(errorEnvelope.parse({ error: news.error }))
  }
  throw new SandlotError('connection_lost', 'the connection broke while the image was being built')
}

async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const part of bytes) {
    const lines = (rest + decoder.decode(part, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') yield line
  }
  if (rest !== '') yield rest
}

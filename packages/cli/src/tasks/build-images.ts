/** Images of many tasks, built before anything is started: one that can't be is the fault of its task alone. */
import { ImageDescription, type ImageLike, type Sandlot, SandlotError } from 'sandlot'
import { startProgressLine } from '../output/progress.ts'

/** What a sandbox starts from, or why it can't. */
export type Built = { readonly from: ImageLike } | { readonly error: SandlotError }

const AT_ONCE = 2

/** Equal descriptions are built once. Anything but a refusal of an image ends it. */
export async function buildImages(
  client: Sandlot,
  wanted: Iterable<ImageLike>,
  signal: AbortSignal,
): Promise<ReadonlyMap<ImageLike, Built>> {
  const all = [...new Set(wanted)]
  const built = new Map<ImageLike, Built>()
  const descriptions = all.filter((from) => from instanceof ImageDescription).values()
  using line = startProgressLine()
  for (const from of all) if (!(from instanceof ImageDescription)) built.set(from, { from })
  const work = async () => {
    for (const description of descriptions) {
      const onLog = (text: string) =>
        line.update(`building images, ${built.size} of ${all.length}: ${text}`)
      built.set(description, await build(client, description, { onLog, signal }))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return built
}

async function build(
  client: Sandlot,
  description: ImageDescription,
  options: { readonly onLog: (text: string) => void; readonly signal: AbortSignal },
): Promise<Built> {
  try {
    return { from: (await client.images.build(description, options)).id }
  } catch (error) {
    if (!(error instanceof SandlotError) || error.fault !== 'caller') throw error
    return { error }
  }
}

import type { ImageStore, SandboxSpec } from '@sandlot/runtime'
import type { Entry } from './entry.ts'
import type { OwnershipRecord } from './ownership.ts'
import type { AcquireRequest } from './port.ts'
import { specOf } from './start.ts'

/** From now on the sandbox that is being made is one over this image, which stays meanwhile, with what the image says of commands. */
export async function putOver(
  images: ImageStore,
  entry: Entry,
  request: Pick<AcquireRequest, 'image' | 'env' | 'workdir' | 'user' | 'checkpoint'>,
): Promise<void> {
  const { checkpoint, image: wanted } = request
  // Saved memory needs the very layers that it was saved over.
  const isRestored = checkpoint !== undefined
  const pinned = await (isRestored ? images.pin(wanted) : images.pinForStart(wanted))
  const { id: image } = pinned.image
  entry.pinned?.[Symbol.dispose]()
  entry.pinned = pinned
  const { config } = pinned.image
  entry.record = {
    ...entry.record,
    image,
    ...(image === wanted ? {} : { from: entry.record.from ?? wanted }),
    env: { ...config.env, ...request.env },
    workdir: request.workdir ?? (config.workdir || '/'),
    user: request.user ?? (config.user || '0'),
  }
}

/** What a command sees in a world of the sandbox that shows this image. @throws ImageError `image_unknown` */
export async function seenIn(
  images: ImageStore,
  id: string,
  sandbox: Pick<Entry, 'network'> | undefined,
): Promise<Pick<OwnershipRecord, 'env' | 'workdir' | 'user'>> {
  using pinned = await images.pin(id)
  const { env, workdir, user } = pinned.image.config
  return {
    env: { ...sandbox?.network?.env, ...env },
    workdir: workdir || '/',
    user: user || '0',
  }
}

/** What the driver is told of it. */
export function specFor({ record, pinned, room }: Entry): SandboxSpec {
  const gpus = room?.gpus ?? []
  const spec = specOf(record, pinned?.image.layers ?? [])
  return gpus.length > 0 ? { ...spec, gpus } : spec
}

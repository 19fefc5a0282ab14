/** Files of this machine that are made from streams. */
import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { chmod, mkdir, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Writes a file, making missing directories. It is there whole, or as it was before. */
export async function writeLocalFile(
  content: AsyncIterable<Uint8Array>,
  local: string,
  mode: number,
): Promise<void> {
  const path = resolve(local)
  const part = `${path}.${randomUUID()}.part`
  await mkdir(dirname(path), { recursive: true })
  try {
    await pipeline(Readable.from(content), createWriteStream(part, { flags: 'wx' }))
    await chmod(part, mode & 0o777)
    await rename(part, path)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

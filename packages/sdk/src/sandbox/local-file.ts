/** Files of this machine that are made from streams. */
import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { chmod, mkdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SandlotError } from '@sandlot/protocol'
import { localFailure } from './local-failure.ts'

/** Writes a file, making missing directories. It is there whole, or as it was before. */
export async function writeLocalFile(
  content: AsyncIterable<Uint8Array>,
  local: string,
  mode: number,
): Promise<void> {
  const path = resolve(local)
  const part = `${path}.${randomUUID()}.part`
  try {
    await checkPlace(path)
    await mkdir(dirname(path), { recursive: true }).catch((error) => {
      throw localFailure(error, `cannot make ${dirname(path)}`)
    })
    await pipeline(Readable.from(content), createWriteStream(part, { flags: 'wx' }))
    await chmod(part, mode & 0o777)
    await rename(part, path)
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined)
    throw localFailure(error, `cannot write ${path}`)
  }
}

/** Told before anything is fetched: at the end a directory in its place would refuse the file. */
async function checkPlace(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  if (!found?.isDirectory()) return
  throw new SandlotError('local_file_failed', `${path} is a directory`, {
    hint: 'Name the file itself, for example DIRECTORY/NAME.',
    details: { errno: 'EISDIR' },
  })
}

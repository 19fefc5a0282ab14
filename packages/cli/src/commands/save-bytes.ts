import { open, rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Mistake } from '../failure.ts'
import { printBytes } from '../output/terminal.ts'

export interface SaveOptions {
  readonly signal: AbortSignal
  /** Default: as the process makes files. */
  readonly mode?: number
}

/** Writes a stream to a new file, or to standard output for `-`. A file that was not written to its end is removed. */
export async function saveBytes(
  bytes: AsyncIterable<Uint8Array>,
  path: string,
  { signal, mode }: SaveOptions,
): Promise<void> {
  if (path === '-') {
    for await (const part of bytes) await printBytes(part)
    return
  }
  const file = await open(path, 'wx', mode).catch((error) => {
    throw notWritable(path, error)
  })
  try {
    await pipeline(Readable.from(bytes), file.createWriteStream({ flush: true }), { signal })
  } catch (error) {
    await rm(path, { force: true })
    signal.throwIfAborted()
    throw error
  }
}

/** Whatever is there stays. */
function notWritable(path: string, error: NodeJS.ErrnoException): Mistake {
  if (error.code === 'EEXIST') {
    return new Mistake(`${path} is there already`, 'remove it, or take another name')
  }
  return new Mistake(`${path} can't be written: ${error.message}`, 'check the path')
}

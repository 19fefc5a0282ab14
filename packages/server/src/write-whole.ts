import { randomBytes } from 'node:crypto'
import { rename, writeFile } from 'node:fs/promises'

/** Writes a small file: it is there whole, or as it was before. */
export async function writeWhole(path: string, text: string, mode: number): Promise<void> {
  const part = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.part`
  await writeFile(part, text, { mode })
  await rename(part, path)
}

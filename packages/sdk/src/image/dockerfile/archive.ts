/** What `ADD` unpacks: tars as they are, in gzip or in zstd. */
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createGunzip } from 'node:zlib'
import type { Found } from './context.ts'
import { type Instruction, refused } from './instruction.ts'

const BLOCK = 512

/** Opens an archive as it is; undefined for any other file, which `ADD` copies. */
export async function archiveTar(
  instruction: Instruction,
  { files, name }: Found,
): Promise<(() => AsyncIterable<Uint8Array>) | undefined> {
  const path = files[0]?.path ?? ''
  const head = await headOf(path)
  const as = (...bytes: number[]) => bytes.every((byte, index) => head[index] === byte)
  if (as(0x42, 0x5a, 0x68) || as(0xfd, 0x37, 0x7a, 0x58, 0x5a)) {
    throw refused(
      instruction,
      `of ${name}: archives in bzip2 or xz are not unpacked`,
      'Pack it with gzip, or COPY it and unpack it by RUN.',
    )
  }
  const tar = as(0x1f, 0x8b) ? isTar(await unpackedHead(path)) : isTar(head)
  const zstd = as(0x28, 0xb5, 0x2f, 0xfd) && /\.t(ar\.)?zst$/.test(name)
  return tar || zstd ? () => createReadStream(path) : undefined
}

async function headOf(path: string): Promise<Uint8Array> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(new Uint8Array(BLOCK), 0, BLOCK, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

async function unpackedHead(path: string): Promise<Uint8Array> {
  const packed = createReadStream(path, { end: 256 * 1024 })
  const unpacked = packed.pipe(createGunzip())
  packed.on('error', (error) => unpacked.destroy(error))
  try {
    for await (const bytes of unpacked) return bytes as Uint8Array
  } catch {
    // A damaged one is no archive: it is copied.
  } finally {
    packed.destroy()
  }
  return new Uint8Array()
}

function isTar(block: Uint8Array): boolean {
  return new TextDecoder('latin1').decode(block.subarray(257, 262)) === 'ustar'
}

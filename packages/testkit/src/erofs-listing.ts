import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstat, readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryDirectory } from './temporary-directory.ts'

const execute = promisify(execFile)

/** One line a path, sorted: `path kind mode uid:gid mtime content`. Odd bytes of a path stay as latin1 characters. */
export async function listErofs(image: string): Promise<string[]> {
  await using directory = await temporaryDirectory()
  const root = join(directory.path, 'root')
  await execute('fsck.erofs', [`--extract=${root}`, image])
  const lines: string[] = []
  await list(Buffer.from(root), '', lines)
  return lines.sort()
}

/** The same without metadata: `path kind content`. */
export async function listErofsContents(image: string): Promise<string[]> {
  return (await listErofs(image)).map((line) => {
    const [path, kind, , , , ...content] = line.split(' ')
    return [path, kind, ...content].join(' ').trim()
  })
}

async function list(directory: Buffer, prefix: string, lines: string[]): Promise<void> {
  for (const name of await readdir(directory, { encoding: 'buffer' })) {
    const path = Buffer.concat([directory, Buffer.from('/'), name])
    const shown = `${prefix}${name.toString('latin1')}`
    const found = await lstat(path)
    const mode = (found.mode & 0o7777).toString(8)
    const mtime = Math.floor(found.mtimeMs / 1000)
    const start = `${shown} ${kindOf(found)} ${mode} ${found.uid}:${found.gid} ${mtime}`
    if (found.isDirectory()) {
      lines.push(start)
      await list(path, `${shown}/`, lines)
    } else if (found.isFile()) {
      const content = await readFile(path)
      lines.push(`${start} ${summary(content)}`)
    } else if (found.isSymbolicLink()) {
      lines.push(`${start} ${await readlink(path)}`)
    } else {
      lines.push(found.isCharacterDevice() ? `${start} ${found.rdev}` : start)
    }
  }
}

function kindOf(found: Awaited<ReturnType<typeof lstat>>): string {
  if (found.isDirectory()) return 'directory'
  if (found.isFile()) return 'file'
  if (found.isSymbolicLink()) return 'symlink'
  if (found.isFIFO()) return 'fifo'
  return found.isCharacterDevice() ? 'whiteout' : 'other'
}

function summary(content: Buffer): string {
  if (content.length <= 40) return content.toString('latin1')
  return `${content.length} bytes ${createHash('sha256').update(content).digest('hex').slice(0, 12)}`
}

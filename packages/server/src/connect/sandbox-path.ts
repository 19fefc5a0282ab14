import { SandlotError } from '@sandlot/protocol'
import { resolvePath } from '../node/commands.ts'

const PATH_BYTES_MAX = 4_096
const SLASH = 0x2f

/**
 * A path of a request, absolute or below the working directory; names that are no UTF-8 stay bytes.
 * @throws SandlotError `invalid_request`
 */
export function sandboxPathOf(workdir: string, path: string | Uint8Array): string | Uint8Array {
  const bytes = Buffer.from(path)
  if (bytes.length === 0) throw new SandlotError('invalid_request', 'path: the path is empty')
  if (bytes.length > PATH_BYTES_MAX) {
    throw new SandlotError('invalid_request', `path: longer than ${PATH_BYTES_MAX} bytes`)
  }
  if (bytes.includes(0)) throw new SandlotError('invalid_request', 'path: holds a NUL character')
  if (typeof path === 'string' && !path.isWellFormed()) {
    throw new SandlotError('invalid_request', 'path: holds half a character (a lone surrogate)')
  }
  if (typeof path === 'string') return resolvePath(workdir, path)
  if (bytes[0] === SLASH) return bytes
  return Buffer.concat([Buffer.from(`${workdir.replace(/\/+$/, '')}/`), bytes])
}

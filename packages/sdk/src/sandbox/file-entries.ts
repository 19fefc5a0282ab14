/** A directory's entries as they come over a stream. */
import { decodeMulti } from '@msgpack/msgpack'
import { type FileEntry, fileEntry, SandlotError } from '@sandlot/protocol'
import { z } from 'zod'

const wireEntry = fileEntry.omit({ nameBase64: true }).extend({
  name: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
})

export function decodeEntries(bytes: Uint8Array): FileEntry[] {
  const entries: FileEntry[] = []
  for (const decoded of decodeMulti(bytes)) {
    const parsed = wireEntry.safeParse(decoded)
    if (!parsed.success) {
      throw new SandlotError('internal', 'the daemon sent a directory entry that is none')
    }
    const { name, ...rest } = parsed.data
    entries.push({ ...namesOf(name), ...rest })
  }
  return entries
}

/** Text where the name is UTF-8; else text with replacements, and the exact bytes beside it. */
function namesOf(name: Uint8Array): Pick<FileEntry, 'name' | 'nameBase64'> {
  try {
    return { name: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(name) }
  } catch {
    return {
      name: new TextDecoder('utf-8', { ignoreBOM: true }).decode(name),
      nameBase64: Buffer.from(name).toString('base64'),
    }
  }
}

/** Names of files are bytes. In paths that are put together, each byte is one character; here are the ways in and out. */
import { isUtf8 } from 'node:buffer'

/** The bytes of a text, each as one character. */
export function bytesAsText(text: string): string {
  return Buffer.from(text).toString('latin1')
}

/** For the file system: exactly these bytes. */
export function onDisk(path: string): Buffer {
  return Buffer.from(path, 'latin1')
}

/** The text that the bytes are, or undefined where they are none. */
export function textOfName(name: string): string | undefined {
  const bytes = onDisk(name)
  return isUtf8(bytes) ? bytes.toString() : undefined
}

/** Text where it is some, else the bytes. */
export function nameOf(name: string): string | Buffer {
  return textOfName(name) ?? onDisk(name)
}

/** For a message: bytes that are no text are escaped. */
export function shownName(name: string): string {
  const text = textOfName(name)
  if (text !== undefined) return JSON.stringify(text.slice(0, SHOWN_LENGTH))
  const escaped = (byte: string) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`
  return `"${name.slice(0, SHOWN_LENGTH).replace(/[^ !#-~]/g, escaped)}"`
}

const SHOWN_LENGTH = 200

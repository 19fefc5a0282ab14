/** A command line for people: as a shell would take it, on one line, safe for a terminal. `words` are bytes with a NUL between two. */
export function commandText(words: Uint8Array, isCut: boolean): string {
  if (words.length === 0) return isCut ? '…' : ''
  const text = Buffer.from(words).toString().split('\0').map(quoted).join(' ')
  return isCut ? `${text} …` : text
}

function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word
  if (!CONTROL.test(word)) return `'${word.replaceAll("'", "'\\''")}'`
  const escaped = word.replace(/[\\']/g, '\\$&').replace(CONTROLS, escapedControl)
  return `$'${escaped}'`
}

const CONTROL = /\p{Cc}/u
const CONTROLS = /\p{Cc}/gu

function escapedControl(character: string): string {
  if (character === '\n') return '\\n'
  if (character === '\t') return '\\t'
  return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
}

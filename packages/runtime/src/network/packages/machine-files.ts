import { readFile } from 'node:fs/promises'
import { NETWORK_LIMITS } from '../limits.ts'

/** A file of the machine as text; empty where there is none, or too large a one. */
export async function textOf(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch(() => '')
  return text.length > NETWORK_LIMITS.settingsBytes ? '' : text
}

/** `key = value` lines of an ini file below the sections that are wanted; further lines of a value are joined. */
export function parseIni(text: string, sections: readonly string[]): Map<string, string> {
  const found = new Map<string, string>()
  let section = ''
  let last: string | undefined
  for (const line of text.split('\n')) {
    const header = /^\s*\[([^\]]+)\]/.exec(line)
    const [, key, value = ''] = /^([^\s#;=:[][^=:]*?)\s*[=:]\s*(.*)$/.exec(line) ?? []
    if (header) section = header[1] ?? ''
    else if (!sections.includes(section) || /^\s*([#;]|$)/.test(line)) last = undefined
    else if (key !== undefined) {
      last = key.toLowerCase()
      found.set(last, value.trim())
    } else if (last !== undefined) found.set(last, `${found.get(last)} ${line.trim()}`.trim())
  }
  return found
}

/** `key=value` lines of an npmrc; variables of the environment are put in. */
export function parseNpmrc(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): Map<string, string> {
  const lines = text.split('\n').flatMap((line) => {
    const [, key, value = ''] = /^\s*([^#;=\s][^=]*?)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (key === undefined) return []
    const bare = value.replace(/^"(.*)"$/, '$1')
    return [[key, bare.replace(/\$\{([^}]+)\}/g, (_, name) => env[name] ?? '')] as const]
  })
  return new Map(lines)
}

/**
 * Reads where this machine itself gets its Debian packages from, and writes the same for any suite. So mirrors, keyrings and
 * trust that were set up here hold for images too.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ImageError } from './image-error.ts'

export interface AptSource {
  readonly uris: readonly string[]
  readonly suites: readonly string[]
  readonly components: readonly string[]
  /** Other fields in deb822 spelling, such as Signed-By. A value may have further lines. */
  readonly fields: Readonly<Record<string, string>>
}

/** Suites that have neither updates nor security archives of their own. */
const ROLLING = new Set(['sid', 'unstable', 'experimental'])

const OWN_FIELDS = new Set(['types', 'uris', 'suites', 'components', 'enabled', 'architectures'])

/** All enabled binary sources of `/etc/apt`. */
export async function readAptSources(aptDirectory: string): Promise<AptSource[]> {
  const parts = join(aptDirectory, 'sources.list.d')
  const names = (await readdir(parts).catch(() => [])).sort()
  const oneLine = [
    join(aptDirectory, 'sources.list'),
    ...names.filter((name) => name.endsWith('.list')).map((name) => join(parts, name)),
  ]
  const stanzas = names.filter((name) => name.endsWith('.sources')).map((name) => join(parts, name))
  const found: AptSource[] = []
  for (const path of oneLine) found.push(...parseOneLine(await textOf(path)))
  for (const path of stanzas) found.push(...parseStanzas(await textOf(path)))
  return found
}

/**
 * The machine's own Debian sources with its code name replaced by `suite`, in deb822 form. Sources of other vendors are left
 * out: only suites named after the machine's release count. Fails with `image_build_failed` when there are none.
 */
export function sourcesForSuite(
  sources: readonly AptSource[],
  codename: string,
  suite: string,
): string {
  const stanzas = sources.flatMap((source) => {
    const suites = source.suites.flatMap((name) => mapSuite(name, codename, suite) ?? [])
    return suites.length === 0 ? [] : [formatStanza({ ...source, suites: [...new Set(suites)] })]
  })
  if (stanzas.length > 0) return stanzas.join('\n')
  throw new ImageError(
    'image_build_failed',
    `This machine has no package source for Debian ${codename || '(unknown release)'}.`,
    {
      hint: 'Debian images are built from the sources in /etc/apt. On another distribution use an OCI layout or a tar.',
    },
  )
}

export function parseOneLine(text: string): AptSource[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)/.exec(line)
    const [, options, uri, suite, components] = match ?? []
    if (uri === undefined || suite === undefined) return []
    return [
      {
        uris: [uri],
        suites: [suite],
        components: words(components ?? ''),
        fields: optionFields(options ?? ''),
      },
    ]
  })
}

export function parseStanzas(text: string): AptSource[] {
  const lines = text.split('\n').filter((line) => !line.startsWith('#'))
  return lines
    .join('\n')
    .split(/\n[ \t]*\n/)
    .flatMap((stanza) => {
      const fields = new Map<string, { readonly name: string; readonly value: string }>()
      for (const match of stanza.matchAll(/^([A-Za-z0-9-]+):([^\n]*(?:\n[ \t][^\n]*)*)/gm)) {
        const [, name = '', value = ''] = match
        fields.set(name.toLowerCase(), { name, value: value.trim() })
      }
      const value = (name: string): string => fields.get(name)?.value ?? ''
      const enabled = !/^(no|false|off|0)$/i.test(value('enabled'))
      if (!enabled || !words(value('types')).includes('deb')) return []
      const others = [...fields].filter(([key]) => !OWN_FIELDS.has(key))
      return [
        {
          uris: words(value('uris')),
          suites: words(value('suites')),
          components: words(value('components')),
          fields: Object.fromEntries(others.map(([, field]) => [field.name, field.value])),
        },
      ]
    })
}

function mapSuite(name: string, codename: string, suite: string): string | undefined {
  const match = /^([a-z]+)(|-updates|-security|\/updates)$/.exec(name)
  if (!match || (match[1] !== codename && match[1] !== 'stable')) return undefined
  const pocket = match[2] ?? ''
  if (pocket !== '' && ROLLING.has(suite)) return undefined
  return `${suite}${pocket}`
}

function formatStanza(source: AptSource): string {
  const fields = {
    Types: 'deb',
    URIs: source.uris.join(' '),
    Suites: source.suites.join(' '),
    Components: source.components.join(' '),
    ...source.fields,
  }
  return Object.entries(fields)
    .map(
      ([name, value]) =>
        `${name}: ${value
          .split('\n')
          .join('\n ')
          .replace(/\n {2,}/g, '\n ')}\n`,
    )
    .join('')
}

/** `signed-by=/x trusted=yes` as deb822 fields. */
function optionFields(options: string): Record<string, string> {
  const fields: Record<string, string> = {}
  for (const option of words(options)) {
    const [key = '', value = ''] = option.split(/=(.*)/s)
    if (key === 'arch') continue
    fields[key.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase())] = value.replaceAll(',', ' ')
  }
  return fields
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '')
}

async function textOf(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '')
}

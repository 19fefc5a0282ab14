/** The text of a `task.toml` → its settings. */
import { parse, TomlError } from 'smol-toml'
import { SETTINGS_FILE } from './format.ts'
import type { Problems } from './problems.ts'
import { type Settings, settings } from './settings.ts'

const NEWEST_MINOR = 4

/** What the settings are and what of them has no meaning; undefined where something is wrong, which `problems` has then. */
export function parseSettings(
  text: string,
  problems: Problems,
): { readonly settings: Settings; readonly notes: readonly string[] } | undefined {
  const raw = parseToml(text, problems)
  if (raw === undefined) return undefined
  const notes: string[] = []
  const first = settings.safeParse(raw)
  // The format passes over what it doesn't know, so that folders may have fields for other tools.
  for (const { path, keys } of unknownKeys(first)) {
    for (const key of keys) {
      notes.push(
        `${SETTINGS_FILE}: ${fieldOf([...path, key])} is no field of the format: passed over`,
      )
      remove(raw, path, key)
    }
  }
  const parsed = notes.length === 0 ? first : settings.safeParse(raw)
  if (!parsed.success) {
    for (const { path, message } of parsed.error.issues) {
      problems.add(SETTINGS_FILE, message, fieldOf(path))
    }
    return undefined
  }
  if (!checkVersion(parsed.data, problems, notes)) return undefined
  return { settings: parsed.data, notes }
}

function parseToml(text: string, problems: Problems): Record<string, unknown> | undefined {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const why = error.message.split('\n')[0]?.replace(/^Invalid TOML document: /, '')
    problems.add(SETTINGS_FILE, `line ${error.line}, column ${error.column}: ${why}`)
    return undefined
  }
}

interface UnknownKeys {
  readonly path: readonly PropertyKey[]
  readonly keys: readonly string[]
}

function unknownKeys(result: ReturnType<typeof settings.safeParse>): readonly UnknownKeys[] {
  const issues = result.error?.issues ?? []
  return issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys' ? [{ path: issue.path, keys: issue.keys }] : [],
  )
}

function remove(raw: unknown, path: readonly PropertyKey[], key: string): void {
  const at = path.reduce((value, name) => (value as Record<PropertyKey, unknown>)[name], raw)
  delete (at as Record<string, unknown>)[key]
}

/** `steps[1].agent.timeout_sec`. */
export function fieldOf(path: readonly PropertyKey[]): string {
  return path
    .map((name, at) =>
      typeof name === 'number' ? `[${name}]` : `${at === 0 ? '' : '.'}${String(name)}`,
    )
    .join('')
}

function checkVersion({ version, schema_version }: Settings, problems: Problems, notes: string[]) {
  const given = schema_version ?? version ?? '1.0'
  const [, minor] = /^1(?:\.(\d+))?$/.exec(given) ?? []
  const field = schema_version === undefined ? 'version' : 'schema_version'
  if (!/^1(\.\d+)?$/.test(given)) {
    problems.add(
      SETTINGS_FILE,
      `${JSON.stringify(given)} is not known: there are 1.0 to 1.${NEWEST_MINOR}`,
      field,
    )
    return false
  }
  if (Number(minor ?? 0) > NEWEST_MINOR) {
    notes.push(
      `${SETTINGS_FILE}: ${field} ${given} is newer than 1.${NEWEST_MINOR}, as which it is read`,
    )
  }
  return true
}

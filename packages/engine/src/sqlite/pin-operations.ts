import type { DatabaseSync } from 'node:sqlite'
import type { OperationHandlers } from './operation.ts'

type PinKind = Extract<keyof OperationHandlers, `pin.${string}`>

export function pinOperations(database: DatabaseSync): OperationHandlers<PinKind> {
  const set = database.prepare('INSERT OR REPLACE INTO blob_pins (name, digest) VALUES (?, ?)')
  const remove = database.prepare('DELETE FROM blob_pins WHERE name = ?')
  const kept = database.prepare('SELECT 1 FROM blob_pins WHERE digest = ? LIMIT 1')
  const list = database.prepare(
    'SELECT name, digest FROM blob_pins WHERE name >= ? AND name < ? AND name > ? ORDER BY name LIMIT ?',
  )
  return {
    'pin.set': ({ name, digest }) => {
      set.run(name, digest)
      return undefined
    },
    'pin.remove': ({ name }) => remove.run(name).changes > 0,
    'pin.list': ({ prefix, after, limit }) => {
      const rows = list.all(prefix, `${prefix}\x7f`, after ?? '', limit)
      return (rows as { name: string; digest: string }[]).map(({ name, digest }) => ({
        name,
        digest,
      }))
    },
    'pin.unpinned': ({ digests }) => digests.filter((digest) => kept.get(digest) === undefined),
  }
}

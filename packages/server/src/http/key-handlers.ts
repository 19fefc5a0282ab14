import { type KeyView, SandlotError } from '@sandlot/protocol'
import type { Holdings } from '../holdings/holdings.ts'
import { idFromKey } from '../id-from-key.ts'
import type { Handlers } from './call.ts'
import { type Caller, type KeyRecord, type KeyRing, LOCAL_KEY } from './keys.ts'
import { pageOf } from './page.ts'

export interface KeyParts {
  readonly keys: KeyRing
  readonly holdings: Holdings
  readonly now: () => number
}

/** Keys of the caller's project; the machine's own key rules those of all. */
export function keyHandlers({
  keys,
  holdings,
  now,
}: KeyParts): Pick<Handlers, 'createKey' | 'listKeys' | 'revokeKey'> {
  return {
    createKey: async ({ caller, body, idempotencyKey }) => {
      const { project = caller.project, scope, name, expires } = body
      if (!rules(caller, project)) throw notYours(caller)
      // Before it can have anything.
      if (project !== 'default') await holdings.share()
      const { record, key } = await keys.create({
        ...{ project, scope },
        ...(name === undefined ? {} : { name }),
        ...(expires === undefined ? {} : { expiresAtMs: now() + expires }),
        ...(idempotencyKey === undefined
          ? {}
          : { id: idFromKey('key', caller.project, idempotencyKey) }),
      })
      return { ...viewOf(record), key }
    },
    listKeys: async ({ caller, query }) => {
      const theirs = keys.list().filter(({ project }) => rules(caller, project))
      const { items, next } = pageOf(theirs, query)
      return { items: items.map(viewOf), next }
    },
    revokeKey: async ({ caller, params }) => {
      const { id = '' } = params
      const found = keys.find(id)
      if (found === undefined || !rules(caller, found.project)) {
        const message = `there is no key ${JSON.stringify(id.slice(0, 64))}`
        throw new SandlotError('key_unknown', message)
      }
      if (id === LOCAL_KEY) throw isLocal()
      await keys.revoke(id)
      return undefined
    },
  }
}

function rules({ project, isOperator }: Caller, of: string): boolean {
  return isOperator || project === of
}

function viewOf({ id, project, scope, createdAtMs, name, expiresAtMs }: KeyRecord): KeyView {
  return {
    ...{ id, project, scope, createdAtMs },
    ...{ name: name ?? null, expiresAtMs: expiresAtMs ?? null },
  }
}

function notYours({ project }: Caller): SandlotError {
  const message = `this key makes keys of project ${project} alone`
  return new SandlotError('forbidden', message, {
    hint: 'For another project use the key of the daemon’s machine, in its data directory.',
  })
}

function isLocal(): SandlotError {
  return new SandlotError('invalid_request', 'the machine’s own key can’t be revoked', {
    hint: 'Delete the file `key` in the data directory and start the daemon again: it makes another.',
  })
}

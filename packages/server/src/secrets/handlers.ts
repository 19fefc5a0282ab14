import { SandlotError, secretName } from '@sandlot/protocol'
import type { Handlers } from '../http/call.ts'
import { pageOf } from '../http/page.ts'
import { type Secrets, unknownSecret } from './secrets.ts'

type SecretRoutes = 'setSecret' | 'listSecrets' | 'deleteSecret'

/** Secrets of the caller's project. Their values come in, and none goes out. */
export function secretHandlers(secrets: Secrets): Pick<Handlers, SecretRoutes> {
  return {
    setSecret: async ({ caller, params, body }) => {
      const parsed = secretName.safeParse(params.name)
      if (!parsed.success) {
        const why = parsed.error.issues[0]?.message ?? 'that is no name of a secret'
        throw new SandlotError('invalid_request', why)
      }
      return await secrets.set(caller.project, parsed.data, body.value)
    },
    listSecrets: async ({ caller, query }) => {
      const all = await secrets.list(caller.project)
      const { items, next } = pageOf(
        all.map((view) => ({ ...view, id: view.name })),
        query,
      )
      return { items: items.map(({ id: _, ...view }) => view), next }
    },
    deleteSecret: async ({ caller, params }) => {
      const { name = '' } = params
      if (!secretName.safeParse(name).success) throw unknownSecret(name)
      await secrets.delete(caller.project, name)
      return undefined
    },
  }
}

import type { TemplateView } from '@sandlot/protocol'
import type { Handlers } from '../http/call.ts'
import { logLines } from '../http/log-lines.ts'
import { pageOf } from '../http/page.ts'
import type { ClientFunctions } from '../images/client-functions.ts'
import { hasTag } from '../sandboxes/has-tag.ts'
import type { TemplateRecord } from './record.ts'
import type { Templates } from './templates.ts'

type TemplateRoutes = 'prepareTemplate' | 'listTemplates' | 'getTemplate' | 'deleteTemplate'

export function templateHandlers(
  templates: Templates,
  functions: ClientFunctions,
): Pick<Handlers, TemplateRoutes> {
  return {
    prepareTemplate: async ({ caller, body, signal }) =>
      logLines({
        signal,
        run: (wait) => {
          const onFunction = functions.of(caller.project, wait.onLine)
          return templates.prepare(caller.project, body, { ...wait, onFunction })
        },
        done: (record) => ({ template: templateViewOf(record) }),
      }),
    listTemplates: async ({ caller, query }) => {
      const all = (await templates.list(caller.project))
        .filter(({ name }) => query.name === undefined || name === query.name)
        .filter(({ tags }) => (query.tag ?? []).every((tag) => hasTag(tags, tag)))
      const { items, next } = pageOf(all, query)
      return { items: items.map(templateViewOf), next }
    },
    getTemplate: async ({ caller, params }) =>
      templateViewOf(await templates.get(caller.project, params.id ?? '')),
    deleteTemplate: async ({ caller, params }) => {
      await templates.remove(caller.project, params.id ?? '')
      return undefined
    },
  }
}

function templateViewOf(record: TemplateRecord): TemplateView {
  return record
}

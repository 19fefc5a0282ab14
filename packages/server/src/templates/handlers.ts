import type { TemplateView } from '@sandlot/protocol'
import type { Handlers } from '../http/call.ts'
import { checkedId } from '../http/checked-id.ts'
import { logLines } from '../http/log-lines.ts'
import { pageOf } from '../http/page.ts'
import type { TemplateRecord } from './record.ts'
import type { Templates } from './templates.ts'

type TemplateRoutes = 'prepareTemplate' | 'listTemplates' | 'getTemplate' | 'deleteTemplate'

export function templateHandlers(templates: Templates): Pick<Handlers, TemplateRoutes> {
  return {
    prepareTemplate: async ({ caller, body, signal }) =>
      logLines({
        signal,
        run: (wait) => templates.prepare(caller.project, body, wait),
        done: (record) => ({ template: templateViewOf(record) }),
      }),
    listTemplates: async ({ caller, query }) => {
      const { items, next } = pageOf(await templates.list(caller.project), query)
      return { items: items.map(templateViewOf), next }
    },
    getTemplate: async ({ caller, params }) =>
      templateViewOf(await templates.get(caller.project, checkedId('template', params.id))),
    deleteTemplate: async ({ caller, params }) => {
      await templates.remove(caller.project, checkedId('template', params.id))
      return undefined
    },
  }
}

function templateViewOf(record: TemplateRecord): TemplateView {
  return record
}

import { idOf, SandlotError, type TemplateView } from '@sandlot/protocol'
import type { Handlers } from '../http/call.ts'
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
      templateViewOf(await templates.get(caller.project, templateIdOf(params.id))),
    deleteTemplate: async ({ caller, params }) => {
      await templates.remove(caller.project, templateIdOf(params.id))
      return undefined
    },
  }
}

function templateViewOf(record: TemplateRecord): TemplateView {
  return record
}

const templateId = idOf('template')

function templateIdOf(text: string | undefined): string {
  const parsed = templateId.safeParse(text)
  if (parsed.success) return parsed.data
  const shown = JSON.stringify((text ?? '').slice(0, 64))
  throw new SandlotError('template_unknown', `${shown} is not the id of a template`)
}

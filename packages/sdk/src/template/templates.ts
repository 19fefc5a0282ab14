import type { Tags, TemplateView } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { pagesOf } from '../connection/pages.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'

export interface ListTemplates extends Waiting {
  /** The one of this name. */
  readonly name?: string
  /** Only those that have all of these tags. */
  readonly tags?: Tags
}

const PAGE_ITEMS = 500

/** `client.templates`: what `client.prepare` made. */
export class Templates {
  readonly #context: ClientContext

  constructor(context: ClientContext) {
    this.#context = context
  }

  /** By its id or name. Throws `template_unknown`. */
  async get(id: string, { signal }: Waiting = {}): Promise<TemplateView> {
    return await this.#context.http.json('getTemplate', { parameters: { id }, signal })
  }

  /** Oldest first, page by page as they are read. */
  list(options: ListTemplates = {}): AsyncGenerator<TemplateView> {
    refuseUnknown(options, ['name', 'tags', 'signal'])
    const { signal, tags = {}, name } = options
    const tag = Object.entries(tags).map(([key, value]) => `${key}=${value}`)
    return pagesOf(this.#context, 'listTemplates', signal ? { signal } : {}, {
      name,
      tag,
      limit: PAGE_ITEMS,
    })
  }

  /** Forgets a template, by its id or name; its image stays, and what runs from it goes on. */
  async delete(id: string, { signal }: Waiting = {}): Promise<void> {
    await this.#context.http.send('deleteTemplate', { parameters: { id }, signal })
  }
}

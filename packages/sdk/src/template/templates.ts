import type { TemplateView } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { pagesOf } from '../connection/pages.ts'

/** `client.templates`: what `client.prepare` made. */
export class Templates {
  readonly #context: ClientContext

  constructor(context: ClientContext) {
    this.#context = context
  }

  /** Throws `template_unknown`. */
  async get(id: string, { signal }: Waiting = {}): Promise<TemplateView> {
    return await this.#context.http.json('getTemplate', { parameters: { id }, signal })
  }

  /** Oldest first, page by page as they are read. */
  list(waiting: Waiting = {}): AsyncGenerator<TemplateView> {
    return pagesOf(this.#context, 'listTemplates', waiting)
  }

  /** Forgets a template; its image stays, and what runs from it goes on. */
  async delete(id: string, { signal }: Waiting = {}): Promise<void> {
    await this.#context.http.send('deleteTemplate', { parameters: { id }, signal })
  }
}

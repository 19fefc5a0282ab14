import type { TemplateView } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'

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
  async *list({ signal }: Waiting = {}): AsyncGenerator<TemplateView> {
    let after: string | undefined
    do {
      const page: { items: TemplateView[]; next: string | null } = await this.#context.http.json(
        'listTemplates',
        { query: { after }, signal },
      )
      yield* page.items
      after = page.next ?? undefined
    } while (after)
  }

  /** Forgets a template; its image stays, and what runs from it goes on. */
  async delete(id: string, { signal }: Waiting = {}): Promise<void> {
    await this.#context.http.send('deleteTemplate', { parameters: { id }, signal })
  }
}

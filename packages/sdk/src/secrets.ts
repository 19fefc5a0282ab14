import type { SecretView } from '@sandlot/protocol'
import type { ClientContext, Waiting } from './connection/context.ts'
import { pagesOf } from './connection/pages.ts'

const PAGE_ITEMS = 500

/** `client.secrets`: what is put into requests of sandboxes on their way out. Their values go in, and are never told again. */
export class Secrets {
  readonly #context: ClientContext

  constructor(context: ClientContext) {
    this.#context = context
  }

  /** Keeps it in the project, or another value of it: sandboxes that use it have that one from their next request on. */
  async set(name: string, value: string, { signal }: Waiting = {}): Promise<SecretView> {
    const request = { parameters: { name }, json: { value }, signal }
    return await this.#context.http.json<SecretView>('setSecret', request)
  }

  /** Their names, oldest first. */
  list({ signal }: Waiting = {}): AsyncGenerator<SecretView> {
    return pagesOf(this.#context, 'listSecrets', signal ? { signal } : {}, { limit: PAGE_ITEMS })
  }

  /** Requests that need it are refused from then on. Throws `secret_unknown`. */
  async delete(name: string, { signal }: Waiting = {}): Promise<void> {
    await this.#context.http.send('deleteSecret', { parameters: { name }, signal })
  }
}

import type { KeyCreated, KeyView, Scope } from '@sandlot/protocol'
import type { ClientContext, Waiting } from './connection/context.ts'
import { pagesOf } from './connection/pages.ts'
import { refuseUnknown } from './connection/unknown-option.ts'

export interface CreateKey extends Waiting {
  /** `read` looks, `run` also starts and stops, `admin` also removes what others use, and rules the keys. */
  readonly scope: Scope
  /** Default: that of the key in use. Only the key of the daemon's machine makes keys of another. */
  readonly project?: string
  /** What it is for. */
  readonly name?: string
  /** How long it is good: `'30d'`. Default: until it is revoked. */
  readonly expires?: string | number
}

const PAGE_ITEMS = 500

/** `client.keys`: who may use the daemon. All of it needs a key of scope `admin`. */
export class Keys {
  readonly #context: ClientContext

  constructor(context: ClientContext) {
    this.#context = context
  }

  /** Creates a key. `key` in the answer is its text, which is shown this once and kept nowhere. */
  async create({ signal, ...options }: CreateKey): Promise<KeyCreated> {
    refuseUnknown(options, ['scope', 'project', 'name', 'expires'])
    return await this.#context.http.json('createKey', { json: options, signal })
  }

  /** Oldest first, without their texts: those of the project, or of all with the key of the daemon's machine. */
  list({ signal }: Waiting = {}): AsyncGenerator<KeyView> {
    return pagesOf(this.#context, 'listKeys', signal ? { signal } : {}, { limit: PAGE_ITEMS })
  }

  /** Refuses the key from now on, and ends within seconds what is connected by it. Throws `key_unknown`. */
  async revoke(id: string, { signal }: Waiting = {}): Promise<void> {
    await this.#context.http.send('revokeKey', { parameters: { id }, signal })
  }
}

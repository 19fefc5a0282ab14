import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { keptSecret } from '../kept-secret.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const VERSION = 'v1'

/**
 * Seals texts with a key that lies beside the data, in a file of its owner alone: a copy of the journal tells none of them. What was
 * sealed for one place opens in no other.
 */
export class Seal {
  readonly #key: Buffer
  readonly #markKey: Buffer

  private constructor(secret: string) {
    const derived = (purpose: string) =>
      Buffer.from(hkdfSync('sha256', secret, 'sandlot secrets', purpose, 32))
    this.#key = derived('seal')
    this.#markKey = derived('mark')
  }

  /** Of `<dataDirectory>/secrets.key`, which is made when there is none. */
  static async open(dataDirectory: string): Promise<Seal> {
    const fresh = () => randomBytes(32).toString('base64url')
    return new Seal(await keptSecret(join(dataDirectory, 'secrets.key'), fresh))
  }

  seal(text: string, place: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce).setAAD(Buffer.from(place))
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return `${VERSION}.${Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')}`
  }

  /** Throws where it was sealed with another key, or for another place. */
  open(sealed: string, place: string): string {
    const bytes = Buffer.from(sealed.slice(VERSION.length + 1), 'base64url')
    const nonce = bytes.subarray(0, NONCE_BYTES)
    const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
    const decipher = createDecipheriv(ALGORITHM, this.#key, nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(place)).setAuthTag(tag)
    const opened = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES))
    return Buffer.concat([opened, decipher.final()]).toString('utf8')
  }

  /** The same for the same place, and to be guessed by nobody who hasn't the key. */
  mark(place: string): string {
    return createHmac('sha256', this.#markKey).update(place).digest('hex').slice(0, 40)
  }
}

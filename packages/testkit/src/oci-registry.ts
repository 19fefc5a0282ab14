import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface OciRegistryImage {
  /** Plain tars, bottom first. */
  readonly layers: readonly Uint8Array[]
  /** The `config` object of the image's configuration. */
  readonly config?: Readonly<Record<string, unknown>>
  /** One manifest for each, below an index. Default: this machine's alone, without an index. */
  readonly architectures?: readonly string[]
}

interface Stored {
  readonly type: string
  readonly content: Buffer
}

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const INDEX = 'application/vnd.oci.image.index.v1+json'
const CONFIG = 'application/vnd.oci.image.config.v1+json'
const LAYER = 'application/vnd.oci.image.layer.v1.tar'

/** A registry on loopback over plain HTTP: enough of the distribution API to be pulled from. */
export class OciRegistry implements AsyncDisposable {
  readonly #contents = new Map<string, Stored>()
  readonly #tags = new Map<string, string>()
  readonly #server = createServer((request, response) => this.#answer(request, response))
  /** `METHOD /path` of each request, in order. */
  readonly requests: string[] = []
  /** `user:password` that every request must bring. */
  credentials: string | undefined

  private constructor() {}

  static async start(): Promise<OciRegistry> {
    const registry = new OciRegistry()
    await new Promise<void>((resolve) => registry.#server.listen(0, '127.0.0.1', resolve))
    return registry
  }

  /** `127.0.0.1:port` */
  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Sets a tag; returns the digest of what it names. */
  push(repository: string, tag: string, image: OciRegistryImage): string {
    const native = process.arch === 'x64' ? 'amd64' : process.arch
    const layers = image.layers.map((layer) => this.#store(LAYER, Buffer.from(layer)))
    const diffIds = layers.map(({ digest }) => digest)
    const manifests = (image.architectures ?? [native]).map((architecture) => {
      const platform = { os: 'linux', architecture }
      const rootfs = { type: 'layers', diff_ids: diffIds }
      const config = this.#json(CONFIG, { ...platform, config: image.config ?? {}, rootfs })
      const manifest = { schemaVersion: 2, mediaType: MANIFEST, config, layers }
      return { ...this.#json(MANIFEST, manifest), platform }
    })
    const index = { schemaVersion: 2, mediaType: INDEX, manifests }
    const named = image.architectures ? this.#json(INDEX, index) : manifests[0]
    const digest = named?.digest ?? ''
    this.#tags.set(`${repository}:${tag}`, digest)
    return digest
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #json(type: string, value: unknown) {
    return this.#store(type, Buffer.from(JSON.stringify(value)))
  }

  #store(mediaType: string, content: Buffer) {
    const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`
    this.#contents.set(digest, { type: mediaType, content })
    return { mediaType, digest, size: content.length }
  }

  #answer({ method = 'GET', url = '/', headers }: IncomingMessage, response: ServerResponse): void {
    this.requests.push(`${method} ${url}`)
    const basic = Buffer.from(this.credentials ?? '').toString('base64')
    if (this.credentials !== undefined && headers.authorization !== `Basic ${basic}`) {
      response.setHeader('www-authenticate', 'Basic realm="test"')
      fail(response, 401, 'UNAUTHORIZED')
      return
    }
    if (url === '/v2/') {
      response.end('{}')
      return
    }
    const [, repository, kind, name] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(url) ?? []
    const digest = kind === 'manifests' ? this.#tags.get(`${repository}:${name}`) : undefined
    const stored = this.#contents.get(digest ?? name ?? '')
    if (!stored) {
      fail(response, 404, kind === 'manifests' ? 'MANIFEST_UNKNOWN' : 'BLOB_UNKNOWN')
      return
    }
    response.setHeader('content-type', stored.type)
    response.setHeader('content-length', stored.content.length)
    response.setHeader('docker-content-digest', digest ?? name ?? '')
    response.end(method === 'HEAD' ? undefined : stored.content)
  }
}

function fail(response: ServerResponse, status: number, code: string): void {
  response.statusCode = status
  response.setHeader('content-type', 'application/json')
  response.end(
    JSON.stringify({ errors: [{ code, message: code.toLowerCase().replace('_', ' ') }] }),
  )
}

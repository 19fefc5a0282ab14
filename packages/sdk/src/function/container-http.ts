import { readFile, writeFile } from 'node:fs/promises'
import { blobFile, type RouteName, SandlotError } from '@sandlot/protocol'
import { Http, type RequestOptions } from '../connection/http.ts'

/**
 * Requests from inside of a container. Its token reaches one sandbox and no contents: those that an attempt needs lie beside its module,
 * and those that it leaves are taken from there.
 */
export class ContainerHttp extends Http {
  override async exists(route: RouteName, options: RequestOptions = {}): Promise<boolean> {
    return route === 'headBlob' ? false : await super.exists(route, options)
  }

  override async send(route: RouteName, options: RequestOptions = {}): Promise<void> {
    if (route !== 'putBlob') return await super.send(route, options)
    const { bytes } = options
    if (!(bytes instanceof Uint8Array)) {
      throw new SandlotError('invalid_request', 'a container keeps bytes alone')
    }
    await writeFile(pathOf(options), bytes)
  }

  override async *bytes(
    route: RouteName,
    options: RequestOptions = {},
  ): AsyncGenerator<Uint8Array> {
    if (route === 'getBlob') yield await readFile(pathOf(options))
    else yield* super.bytes(route, options)
  }
}

function pathOf({ parameters }: RequestOptions): URL {
  return new URL(blobFile(parameters?.digest ?? ''), import.meta.url)
}

/** What the SDK takes from its environment; no other file of this package reads it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const environment = process.env

/** `SANDLOT_URL`, `SANDLOT_API_KEY`: a daemon anywhere. */
export const givenUrl = environment.SANDLOT_URL
export const givenApiKey = environment.SANDLOT_API_KEY

/** The `sandlot` command to start a daemon with, in place of the one on PATH. */
export const givenBinary = environment.SANDLOT_BIN

const runDirectory = environment.SANDLOT_RUN_DIRECTORY ?? '/run/sandlot'

/** Where a daemon of this machine says where it is. */
export const announcementPath = join(runDirectory, 'daemon.json')

/** Where a daemon answers, and the key it takes. */
export interface Endpoint {
  readonly url: string
  readonly apiKey: string
}

/** The daemon that runs on this machine, or undefined. Its key is readable for its own user alone. */
export async function findLocalEndpoint(): Promise<Endpoint | undefined> {
  try {
    const announced = JSON.parse(await readFile(announcementPath, 'utf8')) as {
      url: string
      dataDirectory: string
    }
    const apiKey = (await readFile(join(announced.dataDirectory, 'key'), 'utf8')).trim()
    return { url: announced.url, apiKey }
  } catch {
    return undefined
  }
}

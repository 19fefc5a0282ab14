/** What the SDK takes from its environment, when it needs it; no other file of this package reads it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { SandlotError } from '@sandlot/protocol'
import { z } from 'zod'

/** Where a daemon answers, and the key it takes. */
export interface Endpoint {
  readonly url: string
  readonly apiKey: string
}

/** `SANDLOT_URL`, `SANDLOT_API_KEY`: a daemon anywhere. An empty variable counts as none. */
export function givenUrl(): string | undefined {
  return process.env.SANDLOT_URL || undefined
}

export function givenApiKey(): string | undefined {
  return process.env.SANDLOT_API_KEY || undefined
}

/** `SANDLOT_BIN`: the `sandlot` command to start a daemon with, in place of the one on PATH. */
export function givenBinary(): string | undefined {
  return process.env.SANDLOT_BIN || undefined
}

/** `SANDLOT_RUN_DIRECTORY`, where a daemon of this machine says where it is. Default /run/sandlot. */
export function runDirectory(): string {
  return process.env.SANDLOT_RUN_DIRECTORY || '/run/sandlot'
}

const announcement = z.object({ url: z.string(), dataDirectory: z.string() })

/** The daemon that runs on this machine. `apiKey` is undefined where its key is another user's. */
export interface LocalDaemonFound {
  readonly url: string
  readonly apiKey: string | undefined
  readonly keyPath: string
}

/** The daemon that says it runs on this machine; whether it answers, only asking it tells. */
export async function findLocalDaemon(): Promise<LocalDaemonFound | undefined> {
  try {
    const text = await readFile(join(runDirectory(), 'daemon.json'), 'utf8')
    const { url, dataDirectory } = announcement.parse(JSON.parse(text))
    const keyPath = join(dataDirectory, 'key')
    const apiKey = await readFile(keyPath, 'utf8').then(
      (key) => key.trim() || undefined,
      () => undefined,
    )
    return { url, apiKey, keyPath }
  } catch {
    return undefined
  }
}

/** An address as the SDK uses it. @throws SandlotError `invalid_request` for what is no http address */
export function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new SandlotError('invalid_request', `${JSON.stringify(text)} is not an http address`, {
      hint: 'Write it as http://HOST:PORT, where SANDLOT_URL has it or the option `url` of a program.',
    })
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

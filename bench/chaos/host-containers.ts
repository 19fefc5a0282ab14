/** Where the fake driver, whose sandboxes run nothing, has its functions: each container is a process of this machine. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Digest, Engine } from '@sandlot/engine'
import type { Container, ContainerSource, OpenContainer } from '@sandlot/server'

export type HostRequest =
  | { readonly id: string; readonly json: string; readonly attempt: number }
  | { readonly id: string; readonly abort: true }

export type HostAnswer =
  | { readonly ready: true }
  | { readonly id: string; readonly json: string }
  | { readonly id: string; readonly error: { readonly name: string; readonly message: string } }
  | { readonly id: string; readonly news: unknown }

type Input = Parameters<Container['run']>[0]
type End = Awaited<ReturnType<Container['run']>>

/** By it the bench finds them. */
export const HOST_FUNCTION = fileURLToPath(new URL('./host-function.ts', import.meta.url))

/** `url`: of the daemon; nothing of a sandbox leads these processes to it. */
export function hostContainers(
  { blobs }: Pick<Engine, 'blobs'>,
  at: { readonly url: string; readonly directory: string },
): ContainerSource {
  let opened = 0
  return async ({ definition }: OpenContainer) => {
    const path = join(at.directory, `${definition.bundle.replace(/[^0-9a-z]/g, '-')}.mjs`)
    const { body } = await blobs.open(definition.bundle as Digest)
    await writeFile(path, body)
    const child = fork(HOST_FUNCTION, [path, definition.export], { execArgv: ['--no-warnings'] })
    const gone = once(child, 'exit').then(() => {
      throw new Error('its process was killed before it was ready')
    })
    await Promise.race([once(child, 'message'), gone])
    gone.catch(() => {})
    return containerOf(child, `host-${++opened}`, at.url)
  }
}

function containerOf(child: ChildProcess, id: string, url: string): Container {
  const running = new Map<string, { readonly input: Input; readonly settle: (end: End) => void }>()
  const gone = once(child, 'exit').then(() => {
    for (const { settle } of running.values()) settle(LOST)
    running.clear()
  })
  child.on('message', (answer: HostAnswer) => {
    if ('ready' in answer) return
    const found = running.get(answer.id)
    if (!found) return
    if ('news' in answer) return found.input.onNews?.(answer.news)
    running.delete(answer.id)
    if ('json' in answer) found.settle({ kind: 'value', json: answer.json, blob: null })
    else found.settle({ kind: 'error', error: { code: null, ...answer.error } })
  })
  // Of one that was just killed the exit tells; that a message did not reach it is no error of its own.
  const send = (request: HostRequest) => child.connected && child.send(request, () => {})
  return {
    id,
    gone,
    run(input) {
      const { promise, resolve } = Promise.withResolvers<End>()
      running.set(input.id, { input, settle: resolve })
      const json = JSON.stringify({ ...JSON.parse(input.json ?? 'null'), url })
      if (!send({ id: input.id, json, attempt: input.attempt })) return Promise.resolve(LOST)
      return promise
    },
    cancel: (input) => void (running.delete(input) && send({ id: input, abort: true })),
    abort: (input) => void send({ id: input, abort: true }),
    bring: none,
    collect: none,
    async close() {
      child.kill('SIGKILL')
      await gone
    },
  }
}

const LOST: End = {
  kind: 'infra',
  error: { code: 'function_lost', name: 'SandlotError', message: 'the container was lost' },
}

const none = () => Promise.reject(new Error('these episodes have no files of their own'))

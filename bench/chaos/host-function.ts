/** A container of the fake driver: `node host-function.ts MODULE EXPORT`. Inputs come and go as messages; it ends with whoever began it. */
import { argv } from 'node:process'
import { pathToFileURL } from 'node:url'
import type { HostAnswer, HostRequest } from './host-containers.ts'

const [, , path = '', name = ''] = argv
const running = new Map<string, AbortController>()
const say = (answer: HostAnswer) => void process.send?.(answer)

process.once('disconnect', () => process.exit())
// Whoever began it was killed, and that is told in a moment.
process.on('error', () => process.exit())
const handler = (await import(pathToFileURL(path).href))[name]
process.on('message', (request: HostRequest) => {
  if ('abort' in request) running.get(request.id)?.abort()
  else void run(request)
})
say({ ready: true })

async function run({ id, json, attempt }: Extract<HostRequest, { json: string }>): Promise<void> {
  const abort = new AbortController()
  running.set(id, abort)
  try {
    const tell = (news: unknown) => say({ id, news })
    const value = await handler(JSON.parse(json), { signal: abort.signal, attempt, tell })
    say({ id, json: JSON.stringify(value) })
  } catch (error) {
    const { name: kind, message } = error as Error
    say({ id, error: { name: kind, message } })
  } finally {
    running.delete(id)
  }
}

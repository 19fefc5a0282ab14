/** `sandlot queues …`. */
import { Sandlot } from 'sandlot'
import { counted } from '../output/removed.ts'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'

const MESSAGE_CHARS = 100

export async function listQueuesCommand(options: {
  readonly all?: boolean
  readonly json?: boolean
}): Promise<void> {
  await using client = new Sandlot()
  const queues = await Array.fromAsync(client.queues.list({ all: options.all ?? false }))
  if (options.json) return printJson(queues)
  if (queues.length === 0) return note('no queues')
  const rows = queues.map(({ name, function: worker, tasks, containers, autoscale, trouble }) => [
    ...[name, worker?.label ?? ''],
    ...[tasks.ready, tasks.delayed, tasks.running, tasks.dead].map(String),
    `${containers.ready} of ${autoscale.maxContainers}`,
    trouble ?? '',
  ])
  const headings = ['NAME', 'FUNCTION', 'READY', 'DELAYED', 'RUNNING', 'DEAD']
  printLine(formatTable([...headings, 'CONTAINERS', 'TROUBLE'], rows))
}

export async function showQueueCommand(name: string): Promise<void> {
  await using client = new Sandlot()
  printJson(await (await client.queues.get(name)).view())
}

export async function deadLettersCommand(
  name: string,
  options: { readonly json?: boolean },
): Promise<void> {
  await using client = new Sandlot()
  const queue = await client.queues.get(name)
  const rows: string[][] = []
  for await (const { error, ...letter } of queue.deadLetters()) {
    const { name: kind, message, stack = '' } = error
    if (options.json)
      printLine(JSON.stringify({ ...letter, error: { name: kind, message, stack } }))
    else {
      const said = `${kind}: ${message}`.split('\n')[0]?.slice(0, MESSAGE_CHARS) ?? ''
      const died = new Date(letter.diedAtMs).toISOString()
      rows.push([letter.task, letter.key ?? '', String(letter.attempts), died, said])
    }
  }
  if (options.json) return
  if (rows.length === 0) return note('no dead letters')
  printLine(formatTable(['TASK', 'KEY', 'ATTEMPTS', 'DIED', 'ERROR'], rows))
}

export async function replayCommand(name: string, tasks: readonly string[]): Promise<void> {
  await using client = new Sandlot()
  const queue = await client.queues.get(name)
  const replayed = await queue.replay(tasks.length > 0 ? tasks : undefined)
  note(`put back ${counted(replayed, 'task', 'tasks')}`)
}

export async function deleteQueuesCommand(names: readonly string[]): Promise<void> {
  await using client = new Sandlot()
  for (const name of names) {
    await (await client.queues.get(name)).delete()
    note(`deleted ${name}`)
  }
}

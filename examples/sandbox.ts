/** One sandbox: files in and out, a command that is read while it runs, one that is talked to, one that is too slow. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Image, Sandlot } from 'sandlot'

await using client = await Sandlot.local()
await using sandbox = await client.sandboxes.create({
  from: Image.debian('bookworm', ['python3']),
  resources: { memory: '512MiB' },
  workdir: '/work',
})

await sandbox.files.write('count.py', 'for i in range(3): print("line", i, flush=True)')
const counting = sandbox.exec(['python3', 'count.py'], { stream: true })
for await (const { channel, text } of counting) process[channel].write(text)
console.log('exit code', (await counting.result).exitCode)

const echo = sandbox.exec(['cat'], { stream: true, stdin: true })
await echo.write('said to its stdin\n')
await echo.closeStdin()
for await (const { text } of echo) process.stdout.write(text)

const slow = await sandbox.exec('echo so far; sleep 60', { timeout: '5s' })
console.log({ timedOut: slow.timedOut, stdout: slow.stdout })

const folder = await mkdtemp(join(tmpdir(), 'sandlot-example-'))
await sandbox.files.download('/work', folder)
console.log(await readFile(join(folder, 'count.py'), 'utf8'))
await rm(folder, { recursive: true })

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Image, type Sandbox, type Snapshot } from 'sandlot'
import { expect, test } from 'vitest'
import { runCommand } from './harness/command.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

/** Counts what it is asked, from a number that it drew when it began. */
const SERVER = `
import http.server, os
n = 0
drawn = os.urandom(8).hex()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global n
        n += 1
        body = f'{drawn} {n}'.encode()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *about):
        pass
open('/tmp/began', 'a').write('x')
http.server.HTTPServer(('127.0.0.1', 8000), Handler).serve_forever()
`
const ASK = `python3 -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/').read().decode())"`
/** It holds its input open for writing too: that has no end at which somebody's line could be lost. */
const SESSION = `
import os
total = 0
for line in os.fdopen(os.open('/session/in', os.O_RDWR)):
    total += int(line)
    open('/session/out', 'w').write(str(total))
`

await story('memory that is saved once', { pool: 1 }, (given) => {
  const saved = () => readdir(join(given.daemon.dataDirectory, 'checkpoints'))
  const ask = async (sandbox: Sandbox): Promise<[string, number]> => {
    const { stdout, stderr } = await sandbox.exec(ASK)
    expect(stderr).toBe('')
    const [drawn = '', n] = stdout.trim().split(' ')
    return [drawn, Number(n)]
  }

  test('many go on from a server that was started for none of them', async () => {
    const prepare = async () =>
      await given.client.prepare({
        from: Image.fromId(given.image),
        setup: [['python3', '-c', `open('/server.py', 'w').write(${JSON.stringify(SERVER)})`]],
        env: { GREETING: 'hello' },
        network: 'none',
        resources: { memory: { request: '64MiB', limit: '256MiB' }, pids: 64 },
        snapshot: 'memory',
        start: 'exec python3 /server.py',
        ready: { port: 8000 },
      })
    const template = await prepare()
    expect(template).toMatchObject({ kind: 'memory' })
    expect(await prepare()).toEqual(template)
    expect(await saved()).toHaveLength(1)
    const starts = Array.from({ length: 3 }, () =>
      given.client.sandboxes.create({ from: template }),
    )
    const all = await Promise.all(starts)
    const seeds = new Set<string>()
    const [drawn] = await ask(all[0] as Sandbox)
    for (const [index, each] of all.entries()) {
      // Each counts for itself; none was started again.
      expect(await ask(each)).toEqual([drawn, index === 0 ? 2 : 1])
      expect(await each.view()).toMatchObject({ origin: 'restored', resources: { pids: 64 } })
      const shown = await each.exec(
        'echo $GREETING; cat /tmp/began; echo; cat /dev/sandlot-seed; hostname',
      )
      const [greeting, began, seed = '', hostname] = shown.stdout.split('\n')
      expect([greeting, began, hostname]).toEqual(['hello', 'x', each.id.replace('_', '-')])
      seeds.add(seed)
    }
    expect(seeds.size).toBe(3)
    const refused = given.client.sandboxes.create({ from: template, resources: { pids: 8 } })
    await expect(refused).rejects.toMatchObject({ code: 'invalid_request' })
    for (const each of all) await each.stop()
    const rows = await given.client.rollouts
      .map(
        [{ id: 'a' }, { id: 'b' }],
        async ({ sandbox }) => {
          await sandbox.exec(`${ASK} > /answer`)
        },
        { from: template, concurrency: 2, grade: { run: `grep '^${drawn} 1$' /answer` } },
      )
      .wait()
    expect(rows.map(({ outcome, reward }) => [outcome, reward])).toEqual([
      ['graded', 1],
      ['graded', 1],
    ])
    await given.client.templates.delete(template.id)
    expect(await saved()).toEqual([])
  })

  test('a session goes on in each that starts from it, also under the next daemon', async () => {
    const sandbox = await given.client.sandboxes.create({ from: given.image, checkpointable: true })
    await sandbox.exec('mkdir /session; mkfifo /session/in')
    await sandbox.files.write('/session.py', SESSION)
    await sandbox.exec('setsid python3 /session.py > /dev/null 2>&1 &')
    const add = async (to: Sandbox, number: number, total: number) => {
      await to.exec(`echo ${number} > /session/in`)
      const shows = async () => (await to.exec('cat /session/out')).stdout === String(total)
      await until('the session has added it', shows)
    }
    await add(sandbox, 40, 40)
    const snapshot = await sandbox.snapshot({ kind: 'memory', name: 'forty' })
    expect(snapshot).toMatchObject({ kind: 'memory', parent: given.image, sandbox: sandbox.id })
    expect(snapshot.needs?.runtime).not.toBe('')
    await add(sandbox, 1, 41)
    await sandbox.stop()
    await given.daemon.kill()
    await given.daemon.start()
    const [one, two] = await Promise.all([
      given.client.sandboxes.create({ from: snapshot }),
      given.client.sandboxes.create({ from: snapshot.id, ifIncompatible: 'cold' }),
    ])
    await Promise.all([add(one, 2, 42), add(two, 3, 43)])
    // What they have become is saved as well.
    const { environment } = given.daemon
    const taken = await runCommand(['sandbox', 'snapshot', one.id, '--memory'], { environment })
    expect(taken).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sn_\w+\n$/) })
    const next = await given.client.snapshots.get(taken.stdout.trim())
    expect(next).toMatchObject({ kind: 'memory', parent: snapshot.id })
    await Promise.all([one.stop(), two.stop()])
    await given.client.snapshots.delete(snapshot.id)
    const create = ['sandbox', 'create', '--from', next.id, '--or-cold']
    const created = await runCommand(create, { environment })
    const three = await given.client.sandboxes.get(created.stdout.trim())
    expect(await three.view()).toMatchObject({ origin: 'restored' })
    await add(three, 8, 50)
    await three.stop()
    await given.client.snapshots.delete(next.id)
    expect(await saved()).toEqual([])
  })

  test('who reads a command misses nothing meanwhile, and each copy has the command too', async () => {
    const sandbox = await given.client.sandboxes.create({ from: given.image, checkpointable: true })
    const counts =
      'i=1; until [ -e /enough ]; do echo line $i; i=$((i + 1)); sleep 0.02; done; echo end'
    const streamed = sandbox.exec(counts, { stream: true })
    const buffered = sandbox.exec('until [ -e /enough ]; do sleep 0.1; done; echo done; exit 7')
    let said = ''
    let saving: Promise<Snapshot> | undefined
    for await (const { text } of streamed) {
      said += text
      if (saving || !said.includes('line 20\n')) continue
      saving = sandbox.snapshot({ kind: 'memory' })
      // It goes on until some time after that.
      saving.then(() => sandbox.files.write('/enough', '')).catch(() => {})
    }
    const counted = (text: string) =>
      `${Array.from({ length: text.split('\n').length - 2 }, (_, n) => `line ${n + 1}\n`).join('')}end\n`
    expect(said).toBe(counted(said))
    expect(await streamed.result).toMatchObject({ exitCode: 0 })
    expect(await buffered).toMatchObject({ exitCode: 7, stdout: 'done\n' })
    const snapshot = await (saving as Promise<Snapshot>)
    const copy = await given.client.sandboxes.create({ from: snapshot })
    const found = (await copy.execs()).find(({ exec }) => exec === streamed.id)
    expect(found).toMatchObject({ running: true })
    await copy.files.write('/enough', '')
    const kept = async () => {
      const parts = await Array.fromAsync(copy.output(streamed.id))
      return Buffer.concat(parts).toString()
    }
    // Nobody reads it there: what it said, before and since, is kept.
    await until('it is over in the copy too', async () => (await kept()).endsWith('end\n'))
    const keptThere = await kept()
    expect(keptThere).toBe(counted(keptThere))
    expect(keptThere).toContain('line 20\n')
    await Promise.all([copy.stop(), sandbox.stop()])
    await given.client.snapshots.delete(snapshot.id)
    expect(await saved()).toEqual([])
  })
})

import { Image, type Sandbox } from 'sandlot'
import { expect, test } from 'vitest'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

/** Tells what it drew when it began, and how often it was asked; and counts tenths of a second, or what takes longer. */
const SERVER = `
import http.server, os, threading, time
drawn = os.urandom(8).hex()
asked = 0
ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.1)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += 1
        body = f'{drawn} {asked} {ticks}'.encode()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *about):
        pass
threading.Thread(target=tick, daemon=True).start()
http.server.HTTPServer(('127.0.0.1', 8000), Handler).serve_forever()
`
const ASK = `python3 -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/').read().decode())"`
const COPIES = 10
/** A machine that is busy restores them all within a part of it. */
const IDLE_MS = 45_000
/** Of the server, at the least. */
const TICK_MS = 100

await story(
  'copies of saved memory that are restored ahead',
  {
    ...{ pool: COPIES, poolMax: 2 * COPIES },
    environment: { SANDLOT_POOL_IDLE: `${IDLE_MS}ms` },
  },
  (given) => {
    const prepare = () =>
      given.client.prepare({
        from: Image.fromId(given.image),
        setup: [['python3', '-c', `open('/server.py', 'w').write(${JSON.stringify(SERVER)})`]],
        network: 'none',
        resources: { memory: { request: '64MiB', limit: '256MiB' }, pids: 64 },
        snapshot: 'memory',
        start: 'exec python3 /server.py',
        ready: { port: 8000 },
      })
    const gauge = async (name: string): Promise<number> => {
      const { url, apiKey } = given.daemon
      const headers = { authorization: `Bearer ${apiKey}` }
      const text = await (await fetch(`${url}/metrics`, { headers })).text()
      const line = text.split('\n').find((each) => each.startsWith(`sandlot_${name} `))
      return Number(line?.split(' ')[1])
    }
    const waiting = () => gauge('pool_copies{state="ready"}')
    const ask = async (sandbox: Sandbox) => {
      const { stdout, stderr } = await sandbox.exec(ASK)
      expect(stderr).toBe('')
      const [drawn, asked, ticks] = stdout.trim().split(' ')
      return { drawn, asked: Number(asked), ticks: Number(ticks) }
    }

    test('each goes on as one of its own, from where its memory was saved', async () => {
      const template = await prepare()
      await until('all of them wait', async () => (await waiting()) === COPIES)
      const starts = Array.from({ length: COPIES }, () =>
        given.client.sandboxes.create({ from: template }),
      )
      const all = await Promise.all(starts)
      expect(
        (await Promise.all(all.map((each) => each.view()))).map(({ origin }) => origin),
      ).toEqual(all.map(() => 'restored-ahead'))
      const answers = await Promise.all(all.map(ask))
      expect(new Set(answers.map(({ drawn }) => drawn)).size).toBe(1)
      expect(answers.map(({ asked }) => asked)).toEqual(all.map(() => 1))
      // Its own from the first moment: nothing of it is a sibling's.
      for (const [index, each] of all.entries()) await each.exec(`echo ${index} > /mine`)
      const marks = new Set<string>()
      for (const [index, each] of all.entries()) {
        const text = 'hostname; cat /etc/machine-id /dev/sandlot-seed /mine'
        const { stdout } = await each.exec(text)
        const [hostname = '', machineId = '', seed = '', mine] = stdout.split('\n')
        expect(mine).toBe(String(index))
        expect((await ask(each)).asked).toBe(2)
        for (const mark of [each.id, hostname, machineId, seed]) marks.add(mark)
      }
      expect(marks.size).toBe(4 * COPIES)
      for (const each of all) await each.stop()
      await given.client.templates.delete(template.id)
      expect(await waiting()).toBe(0)
    })

    test('nothing in one runs while it waits, and after an idle time nothing of ours lives', async () => {
      const template = await prepare()
      const first = await given.client.sandboxes.create({ from: template })
      await until('others wait', async () => (await waiting()) > 0)
      const { ticks } = await ask(first)
      await until('time has passed', async () => (await ask(first)).ticks > ticks + 30)
      const takenAtMs = performance.now()
      const second = await given.client.sandboxes.create({ from: template })
      expect((await second.view()).origin).toBe('restored-ahead')
      const counted = (await ask(second)).ticks - ticks
      // Its memory was saved before the first had counted so far, and it runs since it was taken.
      expect(counted).toBeLessThan((performance.now() - takenAtMs) / TICK_MS + 5)
      await first.stop()
      await second.stop()
      const none = async () => (await given.daemon.hostIds()).length === 0
      await until('nobody came for long', none, { patienceMs: IDLE_MS + 60_000 })
      expect(await waiting()).toBe(0)
      // Whoever comes then waits for nothing but a start of its own, and wakes the pool.
      const third = await given.client.sandboxes.create({ from: template })
      expect((await third.view()).origin).toBe('restored')
      await until('others wait again', async () => (await waiting()) > 0)
      await third.stop()
      await given.client.templates.delete(template.id)
    })
  },
)

/** A site in a sandbox, asked as browsers and downloaders ask. */
import { type IncomingHttpHeaders, type RequestOptions, request } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { python } from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const PORT = 8_000

/** Goes on in the background. */
const SITE = python(`
import gzip, json, os
if os.fork(): os._exit(0)
os.setsid()
for fd in (0, 1, 2): os.close(fd)
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
FILE = bytes(range(256)) * 40
class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def out(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(body)
    def do_GET(self):
        if self.path == "/sub/page": return self.out(200, b'<a href="other">', Content_Type="text/html")
        if self.path == "/login": return self.out(303, Location="http://%s/me?q" % self.headers["Host"], Set_Cookie="sid=42; Path=/; HttpOnly")
        if self.path == "/gzip": return self.out(200, gzip.compress(b"zipped"), Content_Encoding="gzip")
        if self.path == "/hints": self.wfile.write(b"HTTP/1.1 103 Early Hints\\r\\nLink: </a.css>; rel=preload\\r\\n\\r\\n")
        if self.path == "/file" and self.headers.get("If-None-Match") == '"1"': return self.out(304, ETag='"1"')
        if self.path == "/file" and (asked := self.headers.get("Range")):
            first, last = map(int, asked.removeprefix("bytes=").split("-"))
            return self.out(206, FILE[first:last + 1], Content_Range="bytes %d-%d/%d" % (first, last, len(FILE)))
        if self.path == "/file": return self.out(200, FILE, Accept_Ranges="bytes", ETag='"1"')
        self.out(200, json.dumps({"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "peer": self.client_address[1]}).encode())
    do_HEAD = do_GET
    def do_POST(self): self.out(200, str(len(self.rfile.read(int(self.headers["Content-Length"])))).encode())
ThreadingHTTPServer(("127.0.0.1", ${PORT}), Site).serve_forever()`)

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly continued: boolean
}

/** A request as it is said, to the daemon's own address: names below localhost are not known everywhere. */
async function ask(url: string, options: RequestOptions = {}, body?: Buffer): Promise<Answer> {
  const { hostname, port, pathname, search, host } = new URL(url)
  const address = hostname.endsWith('.localhost') ? '127.0.0.1' : hostname
  const headers = { host, ...(options.headers as Record<string, string>) }
  return await new Promise((resolve, reject) => {
    let continued = false
    const asked = request({ host: address, port, path: pathname + search, ...options, headers })
    asked.on('continue', () => {
      continued = true
      asked.end(body)
    })
    asked.on('error', reject).on('response', (answer) => {
      Array.fromAsync(answer).then((parts) => {
        const { statusCode: status = 0, headers } = answer
        resolve({ status, headers, body: Buffer.concat(parts), continued })
      }, reject)
    })
    if ('expect' in headers) asked.flushHeaders()
    else asked.end(body)
  })
}

await story('pages of a site in a sandbox', { pool: 1 }, (at) => {
  test('by a path and by a name, with links, redirects, cookies, ranges and what else is asked', async () => {
    await using sandbox = await at.client.sandboxes.create({ from: at.image })
    await sandbox.exec(SITE)
    await sandbox.ports.wait(PORT)
    const [path, name] = await Promise.all([
      sandbox.ports.url(PORT),
      sandbox.ports.url(PORT, { named: true }),
    ])
    for (const site of [path, name]) {
      const at = (link: string) => new URL(link, site).href
      expect(String((await ask(at('sub/page'))).body)).toBe('<a href="other">')
      const login = await ask(at('login'))
      const led = new URL(login.headers.location ?? '', at('login')).href
      expect([login.status, led]).toEqual([303, at('me?q')])
      // On an origin that others share there are no cookies.
      expect(login.headers['set-cookie']).toEqual(
        site === name ? ['sid=42; Path=/; HttpOnly'] : undefined,
      )
      const me = JSON.parse(String((await ask(led, { headers: { cookie: 'sid=42' } })).body))
      expect(me).toMatchObject({ path: '/me?q', headers: { host: `localhost:${PORT}` } })
      expect(me.headers.cookie).toBe(site === name ? 'sid=42' : undefined)

      const zipped = await ask(at('gzip'))
      expect(zipped.headers['content-encoding']).toBe('gzip')
      expect(String(gunzipSync(zipped.body))).toBe('zipped')
      const part = await ask(at('file'), { headers: { range: 'bytes=10-19' } })
      expect([part.status, part.headers['content-range']]).toEqual([206, 'bytes 10-19/10240'])
      expect([...part.body]).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19])
      const known = await ask(at('file'), { headers: { 'if-none-match': '"1"' } })
      expect([known.status, known.body.length, known.headers.etag]).toEqual([304, 0, '"1"'])
      const head = await ask(at('file'), { method: 'HEAD' })
      expect([head.headers['content-length'], head.body.length]).toEqual(['10240', 0])
      expect(JSON.parse(String((await ask(at('hints'))).body)).path).toBe('/hints')

      const headers = { expect: '100-continue', 'content-length': '100000' }
      const up = await ask(at('up'), { method: 'POST', headers }, Buffer.alloc(100_000))
      expect([up.continued, String(up.body)]).toEqual([true, '100000'])
      const upgrade = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c' }
      expect((await ask(at('plain'), { headers: upgrade })).status).toBe(200)

      let before: number | undefined
      // Inside, whoever asks outside.
      await until('a connection is used again', async () => {
        const { peer } = JSON.parse(String((await ask(at('again'))).body))
        const isAgain = peer === before
        before = peer
        return isAgain
      })
    }
    const bare = await ask(path.slice(0, -1))
    expect([bare.status, bare.headers.location]).toEqual([308, new URL(path).pathname])
  })
})

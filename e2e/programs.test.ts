import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { Image, type ResultRow } from 'sandlot'
import { expect, test } from 'vitest'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const byKey = (rows: readonly ResultRow[]) => Object.fromEntries(rows.map((row) => [row.key, row]))
const small = { memory: '256MiB', disk: '64MiB' }

/** Compares the answer with what it is brought; the verdict is a file, as test suites write one. */
const check = {
  run: [
    ...['sh', '-c'],
    'if [ "$(cat /work/answer)" = "$(cat /tests/wanted)" ]; then echo 1; else echo 0; fi >/verdict; exit 3',
  ],
  files: { '/tests/wanted': '42' },
  clear: ['/tests'],
  reward: { file: '/verdict' },
} as const

await story('a run of programs', { pool: 2 }, (given) => {
  test('each ends as it must, graded by what it left', async () => {
    const commands: Record<string, string> = {
      right: 'mkdir -p /work; sed "s/.*is \\([0-9]*\\).*/\\1/" $SANDLOT_TASK_FILE >/work/answer',
      wrong: 'mkdir -p /work; echo 41 >/work/answer; exit 5',
      forger:
        'mkdir -p /work /tests; echo 1 >/verdict; ln -s /verdict /tests/wanted; echo 1 >/work/answer',
      late: 'mkdir -p /work; echo 42 >/work/answer; echo so far; trap "" TERM; while :; do sleep 1; done',
      missing: '/no/such/program',
      eater: 'tail /dev/zero',
    }
    const run = given.client.rollouts.program(
      Object.keys(commands).map((id) => ({ id, question: 'the answer is 42' })),
      {
        ...{ from: given.image, command: ['never'], grade: check, resources: small },
        concurrency: 3,
        each: ({ id }) => ({
          command: commands[id] as string,
          ...(id === 'late' ? { timeout: { agent: '8s' } } : {}),
        }),
      },
    )
    const rows = byKey(await run.wait())
    const told = Object.values(rows).map(({ key, outcome, reward }) => [key, outcome, reward])
    expect(Object.fromEntries(told.map(([key, ...rest]) => [key, rest]))).toEqual({
      right: ['graded', 1],
      wrong: ['graded', 0],
      forger: ['graded', 0],
      late: ['agent_timeout', 1],
      missing: ['episode_error', null],
      eater: ['sandbox_oom', 0],
    })
    expect(rows.wrong?.data).toMatchObject({ exitCode: 5, signal: null })
    expect(rows.missing?.error).toMatch(/not found/)
    const said = await run.artifact(rows.late as ResultRow, 'agent.stdout')
    expect(Buffer.from(said).toString()).toBe('so far\n')
    expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
  })

  test('a grader in an image of its own sees what it is passed alone, whatever the episode starts from', async () => {
    const image = Image.fromId(given.image)
    const grader = image.run('mkdir /grader && echo 42 > /grader/wanted').env({ WHERE: 'grader' })
    const memory = await given.client.prepare({
      ...{ from: image, snapshot: 'memory', start: 'exec sleep 1000', network: 'none' },
      resources: { memory: { request: '64MiB', limit: '256MiB' } },
    })
    const starts = {
      plain: { resources: small },
      'on the disk': { resources: { memory: '256MiB', disk: '1GiB' } },
      'from memory': { from: memory },
    }
    const seen = 'ls -d /out/link /secret /tests; echo "$WHERE"; pgrep sleep'
    const run = given.client.rollouts.program(
      Object.keys(starts).map((id) => ({ id })),
      {
        from: given.image,
        command:
          'mkdir /out; echo 42 > /out/answer; ln -s /bin/sh /out/link; touch /secret; sleep 100 > /dev/null 2>&1 &',
        grade: { run: 'true' },
        each: ({ id }) => ({
          ...starts[id as keyof typeof starts],
          grade: {
            run: `${seen}; cmp /out/answer /grader/wanted`,
            ...{ from: grader, pass: ['/out', '/nothing'] },
          },
        }),
      },
    )
    const rows = await run.wait()
    expect(
      rows.map(({ key, outcome, reward, error }) => [key, error ?? outcome, reward]).sort(),
    ).toEqual(
      Object.keys(starts)
        .map((key) => [key, 'graded', 1])
        .sort(),
    )
    for (const row of rows) {
      const said = await run.artifact(row, 'grade.stdout')
      expect(Buffer.from(said).toString()).toBe('/out/link\ngrader\n')
    }
  })

  test('a grader that does not end tells what it printed until then', async () => {
    const run = given.client.rollouts.program([{ id: 'done' }], {
      ...{ from: given.image, command: ['true'], resources: small },
      timeout: { grade: '6s' },
      retry: { grade: 0 },
      grade: { run: 'echo comparing; echo 3 of 9 >&2; sleep 1000' },
    })
    const [row] = await run.wait()
    expect(row).toMatchObject({
      ...{ outcome: 'grade_timeout', valid: false, reward: null },
      error: 'the grader did not end within 6s: 3 of 9',
    })
    const said = await run.artifact(row as ResultRow, 'grade.stdout')
    expect(Buffer.from(said).toString()).toBe('comparing\n')
  })

  test('a set-up that does not end tells where it was', async () => {
    const run = given.client.rollouts.program([{ id: 'never' }], {
      ...{ from: given.image, command: ['true'], resources: small },
      setup: ['true', 'echo fetching; sleep 1000'],
      timeout: { setup: '6s' },
    })
    expect(await run.wait()).toMatchObject([
      {
        ...{ outcome: 'setup_error', valid: false, reward: null },
        error: 'the set-up did not end within 6s: its command 2: fetching',
      },
    ])
  })

  test('has a model on its loopback, and nothing else', async () => {
    const asked: string[] = []
    const model = createServer(async (request, response) => {
      const body = await Array.fromAsync(request.setEncoding('utf8'))
      asked.push(`${request.url} ${body.join('')}`)
      // Longer than an agent has in all. A timer of a process that stood still may come early.
      const endMs = performance.now() + 9_500
      while (performance.now() < endMs) await setTimeout(100)
      response.end('42')
    })
    await once(model.listen(0, '127.0.0.1'), 'listening')
    try {
      const { port } = model.address() as AddressInfo
      const ask = `
import os, urllib.request
url = os.environ["SANDLOT_MODEL_URL"]
open("/answer", "wb").write(urllib.request.urlopen(url + "/chat", b"six times seven").read())
try:
    urllib.request.urlopen("http://127.0.0.1:${port}/v1/chat", timeout=5)
except OSError:
    raise SystemExit(0)
raise SystemExit("it reached the host")
`
      const run = given.client.rollouts.program([{ id: 'asks' }], {
        ...{ from: given.image, command: ['python3', '-c', ask], resources: small },
        timeout: { agent: '8s', model: '60s' },
        model: { url: `http://127.0.0.1:${port}/v1` },
        grade: { run: '[ "$(cat /answer)" = 42 ]' },
      })
      const [row] = await run.wait()
      expect(row).toMatchObject({ outcome: 'graded', reward: 1, data: { exitCode: 0 } })
      expect(row?.phases.modelMs).toBeGreaterThan(8_000)
      expect(asked).toEqual(['/v1/chat six times seven'])
    } finally {
      model.close()
    }
  })

  test('a daemon that is killed while something is asked of it costs another attempt, and no reward', async () => {
    let asked = 0
    // The first request of each is never answered.
    const seen = new Set<string>()
    const server = createServer((request, response) => {
      asked++
      const again = seen.has(request.url ?? '')
      seen.add(request.url ?? '')
      if (again) response.end('1')
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    try {
      const { port } = server.address() as AddressInfo
      const ask = `
import http.client, os
def ask():
    out = http.client.HTTPConnection(os.environ["HTTP_PROXY"].removeprefix("http://"))
    out.request("GET", "http://127.0.0.1:${port}/" + os.environ["SANDLOT_KEY"])
    return out.getresponse().read()
try:
    ask()
    said = 1
except OSError:
    said = 0.5 if os.environ["SANDLOT_KEY"] == "stubborn" and ask() else 0
open("/said", "w").write(str(said))
`
      const run = given.client.rollouts.program([{ id: 'meek' }, { id: 'stubborn' }], {
        ...{ from: given.image, command: ['python3', '-c', ask], resources: small },
        network: { agent: { allow: [`127.0.0.1:${port}`] } },
        grade: { run: 'cat /said', reward: 'stdout' },
      })
      await run.submitted
      await until('both have asked', () => asked === 2)
      await given.daemon.kill()
      await given.daemon.start()
      const rows = byKey(await (await given.client.rollouts.get(run.name)).wait())
      expect(rows.meek).toMatchObject({ outcome: 'graded', reward: 1, attempt: 2 })
      expect(rows.meek?.attempts[0]).toMatchObject({ outcome: 'infra_lost' })
      expect(rows.stubborn).toMatchObject({ outcome: 'graded', reward: 0.5, attempt: 1 })
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test('a daemon that is killed under it, with no client there, gives one result an episode', async () => {
    const keys = Array.from({ length: 12 }, (_, n) => `t${n}`)
    const run = given.client.rollouts.program(
      keys.map((id) => ({ id })),
      {
        ...{ name: 'unattended', from: given.image, resources: small, concurrency: 4 },
        // Whoever begins it twice leaves two lines.
        command: 'echo begun >>/begun; sleep 2; echo "{\\"reward\\": $(wc -l </begun)}"',
        reward: 'stdout',
      },
    )
    await run.submitted
    await until('some are at work', async () => (await run.view()).counts.running >= 2)
    const { client } = given
    for (const done of [1, 6]) {
      await until(`${done} are done`, async () => (await run.view()).counts.done >= done)
      await given.daemon.kill()
      await given.daemon.start()
    }
    const rows = await (await client.rollouts.get('unattended')).wait()
    expect(rows.map(({ key }) => key).sort()).toEqual([...keys].sort())
    const told = rows.map(({ outcome, reward }) => ({ outcome, reward }))
    expect(told).toEqual(rows.map(() => ({ outcome: 'graded', reward: 1 })))
    // A sandbox that was only being created is made again; what ran in one is not run again.
    const others = rows.flatMap(({ attempts }) => attempts.slice(0, -1))
    const again = others.filter(({ outcome, phases }) => outcome === null || phases.agentMs > 0)
    expect(again).toEqual([])
    expect(await Array.fromAsync(client.sandboxes.list())).toEqual([])
  })
})

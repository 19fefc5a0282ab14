import type { Sandbox } from 'sandlot'
import { SandlotError } from 'sandlot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ESCAPE, TRIES } from './harness/escapes.ts'
import { python } from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const ALL = Object.assign({}, ...Object.values(TRIES)) as Record<string, string>
const USERS = ['0', '65534:65534']

/** Links that mean something else to whoever serves files than to whoever made them. */
const LED_AWAY = [
  ...['root/img', 'root/cg', 'cwd', 'exe', 'environ', 'maps', 'mem', 'fd/0', 'fd/3', 'task'],
  ...['ns/mnt', 'mountinfo', 'cgroup', 'net/unix'],
].flatMap((path) => [`/proc/self/${path}`, `/proc/thread-self/${path}`])

/** Swaps a directory, a link and a file for one another as fast as it can, until it is killed. */
const SWAP = python(`
import os
os.makedirs('/race/real', exist_ok=True)
open('/race/real/file', 'w').write('real')
os.symlink('/etc', '/race/link')
n = 0
while True:
    for source in ('/race/real', '/race/link'):
        try: os.rename(source, '/race/it')
        except OSError: continue
        try: os.rename('/race/it', source)
        except OSError: pass
`)

await story('an escape', { pool: 1 }, (given) => {
  let sandbox: Sandbox
  let neighbour: Sandbox
  const came = new Map<string, Record<string, string>>()

  beforeAll(async () => {
    const resources = { memory: '256MiB', disk: '64MiB' }
    const create = () => given.client.sandboxes.create({ from: given.image, resources })
    ;[sandbox, neighbour] = await Promise.all([create(), create()])
    for (const user of USERS) {
      const { stdout, stderr } = await sandbox.exec([...ESCAPE, JSON.stringify(ALL)], { user })
      came.set(user, stdout === '' ? { broken: stderr } : JSON.parse(stdout))
    }
  })
  afterAll(async () => {
    await Promise.all([sandbox.stop(), neighbour.stop()])
  })

  describe.for(Object.entries(TRIES))('to %s', ([, tries]) => {
    test.for(Object.keys(tries))('%s is refused to root and to others', (name) => {
      expect(USERS.map((user) => came.get(user)?.[name] ?? came.get(user)?.broken)).toEqual([
        'refused',
        'refused',
      ])
    })
  })

  test('by a program that is root’s whoever runs it', async () => {
    await sandbox.exec('cp /usr/bin/python3 /tmp/mine; chmod 6755 /tmp/mine')
    const whose = ['/tmp/mine', '-c', 'import os; print(os.geteuid(), os.getegid())']
    const { stdout } = await sandbox.exec(whose, { user: '65534:65534' })
    expect(stdout).toBe('65534 65534\n')
  })

  test('by links that mean the agent to who serves files, in no direction', async () => {
    const { files } = sandbox
    const links = LED_AWAY.map((target, at) => `ln -s ${target} /led/${at}`).join('; ')
    await sandbox.exec(`mkdir /led; ${links}`)
    const shown = []
    for (const [at, target] of LED_AWAY.entries()) {
      const each = await Promise.allSettled([
        files.read(`/led/${at}`),
        files.write(`/led/${at}/x`, 'x'),
        files.write(`/led/${at}`, 'x'),
        files.list(`/led/${at}`),
      ])
      for (const one of each) {
        const refused = one.status === 'rejected' && one.reason instanceof SandlotError
        if (!refused) shown.push(`${target}: ${one.status}`)
      }
    }
    expect(shown).toEqual([])
    expect(await sandbox.exec('echo alive')).toMatchObject({ stdout: 'alive\n' })
  })

  test('by swapping directories and links while files go up and down', async () => {
    const { files } = sandbox
    await using _ = sandbox.exec(SWAP, { stream: true })
    await until('it swaps', async () => (await sandbox.exec('ls /race')).stdout.includes('link'))
    const before = (await sandbox.exec('ls /etc')).stdout
    const outcomes = new Set<string>()
    for (let n = 0; n < 25; n++) {
      const each = await Promise.allSettled([
        files.write('/race/it/file', 'sent'),
        files.readText('/race/it/file'),
        files.list('/race/it'),
        files.remove('/race/it/none', { recursive: true }),
      ])
      for (const one of each) {
        outcomes.add(one.status === 'fulfilled' ? 'done' : (one.reason as SandlotError).code)
      }
    }
    // Whichever it met, it was one of the world's own: nothing fails in a way that is ours.
    expect([...outcomes].filter((code) => !PLAIN.has(code))).toEqual([])
    const after = (await sandbox.exec('ls /etc')).stdout.replace(/^file\n/m, '')
    expect(after).toBe(before)
    expect((await neighbour.exec('ls /race /etc/file 2>&1; true')).stdout).not.toContain('real')
    expect(await sandbox.exec('echo alive')).toMatchObject({ stdout: 'alive\n' })
  })
})

const PLAIN = new Set([
  ...['done', 'file_not_found', 'file_not_directory', 'file_not_regular', 'file_is_directory'],
])

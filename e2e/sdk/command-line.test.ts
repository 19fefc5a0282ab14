/** What the command line says, against a daemon on sandboxes in memory. */
import { expect, test } from 'vitest'
import { type CommandEnd, runCommand } from '../harness/command.ts'
import { type FakeDaemon, startFakeDaemon } from './fake-daemon.ts'

function sandlot(daemon: FakeDaemon, ...argv: string[]): Promise<CommandEnd> {
  const { url, apiKey } = daemon
  return runCommand(argv, { environment: { SANDLOT_URL: url, SANDLOT_API_KEY: apiKey } })
}

test('what was removed is said, and what the disk has of it', async () => {
  await using daemon = await startFakeDaemon()
  const { id } = await daemon.image()
  const none = await sandlot(daemon, 'images', 'prune')
  expect(none).toEqual({
    code: 0,
    stdout: '',
    stderr: 'sandlot: nothing was there to remove\n',
  })
  const removed = await sandlot(daemon, 'images', 'remove', id)
  expect(removed.code).toBe(0)
  expect(removed.stderr).toMatch(new RegExp(`^sandlot: removed ${id}, freed [1-9]\\S* KiB\n$`))
})

test('what was deleted is said', async () => {
  await using daemon = await startFakeDaemon()
  const client = daemon.client()
  const { id: from } = await daemon.image()
  await using sandbox = await client.sandboxes.create({ from })
  const snapshot = await sandbox.snapshot({ kind: 'filesystem' })
  const template = await client.prepare({ from })
  for (const [verb, id] of [
    ['snapshots', snapshot.id],
    ['templates', template.id],
  ] as const) {
    expect(await sandlot(daemon, verb, 'delete', id)).toEqual({
      code: 0,
      stdout: '',
      stderr: `sandlot: deleted ${id}\n`,
    })
  }
})

test('a sandbox is shown with what it may reach', async () => {
  await using daemon = await startFakeDaemon()
  const { id: from } = await daemon.image()
  const network = { allow: ['api.example.org'] }
  await using sandbox = await daemon.client().sandboxes.create({ from, network })
  const shown = await sandlot(daemon, 'sandbox', 'show', sandbox.id)
  expect(JSON.parse(shown.stdout)).toMatchObject({
    ...{ id: sandbox.id, state: 'running' },
    network: { phase: 'agent', allows: { setup: 'none', agent: network, grade: 'none' } },
  })
})

test('snapshots and templates go by their names, and lists show what a person made', async () => {
  await using daemon = await startFakeDaemon()
  const client = daemon.client()
  const { id: from } = await daemon.image()
  await using sandbox = await client.sandboxes.create({ from, tags: { team: 'a' } })
  const tags = { suite: 'unit' }
  const snapshot = await sandbox.snapshot({ kind: 'filesystem', name: 'warm', tags })
  await sandbox.snapshot({ kind: 'filesystem', name: 'part/1', hidden: true })
  const template = await client.prepare({
    ...{ name: 'env', from, tags },
    setup: [{ key: '1', run: async () => {} }],
  })
  const id = /^sb_\w+\n$/
  const created = await Promise.all(
    ['snapshot:warm', 'warm', 'template:env'].map((start) =>
      sandlot(daemon, 'sandbox', 'create', '--from', start),
    ),
  )
  for (const end of created) expect(end).toMatchObject({ code: 0, stdout: id, stderr: '' })
  const [snapshots, all, templates, shown, ps, wrong] = await Promise.all([
    sandlot(daemon, 'snapshots', 'list'),
    sandlot(daemon, 'snapshots', 'list', '--all'),
    sandlot(daemon, 'templates', 'list', '--name', 'env'),
    sandlot(daemon, 'snapshots', 'show', 'warm'),
    sandlot(daemon, 'ps'),
    sandlot(daemon, 'sandbox', 'create', '--from', 'alpine'),
  ])
  expect(snapshots.stdout).toMatch(/TAGS\n.*warm.*suite=unit\n$/)
  expect(snapshots.stdout.split('\n')).toHaveLength(3)
  expect(all.stdout).toContain('part/1')
  expect(templates.stdout).toMatch(
    new RegExp(`${template.id} +env .*${template.image}.*suite=unit`),
  )
  expect(JSON.parse(shown.stdout)).toMatchObject(snapshot)
  expect(ps.stdout).toMatch(/client +team=a\n/)
  expect(wrong).toMatchObject({ code: 2, stdout: '' })
  expect(wrong.stderr).toContain('Did you mean registry:alpine?')
})

test('a sandbox that can’t be is refused by the option, before its image is built', async () => {
  await using daemon = await startFakeDaemon()
  const { id } = await daemon.image()
  const wrong = [
    [['--memory', 'lots'], '--memory: "lots" is not a size'],
    [['--pids', '1'], '--pids: '],
    [['--keep-warm', '1ms'], '--keep-warm: shorter than'],
    [['--allow', 'http://a'], '--allow'],
  ] as const
  // One that is there is refused by the daemon, one that is described here.
  const asked = ['directory:/nothing/is/here', id].flatMap((from) =>
    wrong.map(async ([argv, said]) => {
      const end = await sandlot(daemon, 'sandbox', 'create', '--from', from, ...argv)
      expect(end).toMatchObject({ code: 2, stdout: '' })
      expect(end.stderr).toContain(`error: ${said}`)
    }),
  )
  await Promise.all(asked)
})

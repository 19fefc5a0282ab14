import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { Image } from 'sandlot'
import { expect, test } from 'vitest'
import { story } from './harness/story.ts'

await story('environments that are prepared once', { pool: 2 }, (given) => {
  test('are what starts from them has, and nothing of a sibling', async () => {
    await using directory = await temporaryDirectory()
    const app = join(directory.path, 'app')
    await mkdir(app)
    await writeFile(join(app, 'answer.py'), 'print(6 * 7)\n')
    let runs = 0
    const key = `key-${Date.now()}`
    const prepare = async () =>
      await given.client.prepare({
        from: Image.fromId(given.image),
        files: { [app]: '/srv/app' },
        env: { GREETING: 'hello' },
        workdir: '/srv/app',
        setup: [
          'python3 answer.py > /srv/answer',
          {
            key,
            run: async ({ sandbox }) => {
              runs += 1
              await sandbox.files.write('/srv/from-function', 'here')
              await sandbox.exec('rm /srv/app/answer.py && ln -s /srv/answer /srv/link')
            },
          },
          'test -e /srv/link',
        ],
        network: 'none',
        resources: { memory: { request: '32MiB', limit: '256MiB' }, pids: 32 },
        name: 'the test',
      })
    const template = await prepare()
    expect(template).toMatchObject({ kind: 'filesystem', name: 'the test' })
    expect((await prepare()).id).toBe(template.id)
    expect(runs).toBe(1)
    const [first, second] = await Promise.all([
      given.client.sandboxes.create({ from: template }),
      given.client.sandboxes.create({ from: template.id }),
    ])
    await first.exec('echo changed > /srv/answer; echo mine > /srv/mine')
    const { stdout } = await second.exec(
      'echo $GREETING; pwd; cat /srv/link /srv/from-function; ls /srv /srv/app',
    )
    expect(stdout).toBe(
      'hello\n/srv/app\n42\nhere/srv:\nanswer\napp\nfrom-function\nlink\n\n/srv/app:\n',
    )
    const { resources } = await second.view()
    expect(resources).toMatchObject({ pids: 32, memory: { limit: 256 * 2 ** 20 } })
    await Promise.all([first.stop(), second.stop()])
    const rows = await given.client.rollouts
      .map(
        [{ id: 'a' }, { id: 'b' }],
        async ({ sandbox }) => {
          const { exitCode } = await sandbox.exec('test "$(cat /srv/answer)" = 42')
          return { reward: exitCode === 0 ? 1 : 0 }
        },
        { from: template, concurrency: 2 },
      )
      .wait()
    expect(rows.map(({ outcome, reward }) => [outcome, reward])).toEqual([
      ['graded', 1],
      ['graded', 1],
    ])
    await given.client.templates.delete(template.id)
    await expect(given.client.sandboxes.create({ from: template })).rejects.toMatchObject({
      code: 'template_unknown',
    })
  })

  test('a function without a key is refused before anything runs', async () => {
    const setup = [async () => {}] as never
    await expect(given.client.prepare({ from: given.image, setup })).rejects.toMatchObject({
      code: 'invalid_request',
      hint: expect.stringContaining('key'),
    })
  })
})

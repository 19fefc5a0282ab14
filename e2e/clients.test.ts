import { expect, test } from 'vitest'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

await story('a client that vanishes', { pool: 1 }, (given) => {
  test('in the middle of commands, files and trees, leaves its sandbox to others', async () => {
    const first = given.daemon.client()
    const sandbox = await first.sandboxes.create({ from: given.image })
    await sandbox.exec('mkdir -p /tree; head -c 40000000 /dev/zero >/large; cp /large /tree/large')
    const flood = sandbox.exec('yes', { stream: true })
    for await (const _ of flood) break
    const endless = async function* () {
      for (;;) yield new Uint8Array(65_536)
    }
    const reading = sandbox.files.readStream('/large')
    await reading.next()
    const doomed = [
      sandbox.exec('echo begun >/begun; sleep 1; echo done >/done'),
      sandbox.exec(['sh', '-c', 'cat >/fed'], { stdin: endless() }),
      sandbox.files.write('/written', endless()),
      flood.result,
      reading.next(),
    ].map((each) => Promise.resolve(each).catch((error) => error))
    await until('it has begun', async () => {
      const looking = await given.client.sandboxes.get(sandbox.id)
      return await looking.files.stat('/begun').catch(() => undefined)
    })
    await first.close()
    await Promise.all(doomed)

    const again = await given.client.sandboxes.get(sandbox.id)
    expect(await again.exec('echo alive')).toMatchObject({ stdout: 'alive\n' })
    await until('the command ends', () => again.files.stat('/done').catch(() => undefined))
    const running = (await again.execs()).filter((each) => each.running)
    expect(running.map(({ exec }) => exec)).toContain(flood.id)
    expect((await again.view()).state).toBe('running')
    await again.stop()
  })
})

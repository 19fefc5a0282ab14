/** Programs that want somebody: who may do more, and who types and reads. */
import { editorsImage, whyNoGvisor } from '@sandlot/testkit'
import type { Pty, Sandbox } from 'sandlot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { story } from './harness/story.ts'

const SIZE = { columns: 80, rows: 24 }
const PATIENCE = '30s'
const USER = 'nobody'

const images = (await whyNoGvisor()) === '' ? [await editorsImage()] : []

await story('a program that asks for a person', { pool: 1, images }, (given) => {
  let sandbox: Sandbox
  beforeAll(async () => {
    const [image] = images
    sandbox = await given.client.sandboxes.create({
      from: image?.id ?? '',
      env: { TERM: 'xterm' },
      resources: { memory: '256MiB', disk: '64MiB' },
    })
    // As in images in which a user may become root without a password.
    await sandbox.exec(
      `echo '${USER} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/all; chmod 440 /etc/sudoers.d/all`,
    )
  })
  afterAll(async () => await sandbox.stop())

  describe('who may do more', () => {
    test.for(['sudo id', 'sudo -n id', 'sudo -S id', 'su -c id', 'su root -c id'])(
      '%s makes no root of a user, and waits for nobody',
      async (command) => {
        const end = await sandbox.exec(command, { user: USER, timeout: PATIENCE })
        expect(end).toMatchObject({ timedOut: false })
        expect(end.exitCode).not.toBe(0)
        expect(end.stdout).not.toContain('uid=0')
        const both = await sandbox.pty({ command, user: USER, size: SIZE })
        // One that refuses at once reads none of it.
        await both.write('\r\r\r\x04').catch(() => {})
        let shown = ''
        for await (const { text } of both) shown += text
        expect((await both.result).exitCode).not.toBe(0)
        expect(shown).not.toContain('uid=0')
      },
    )

    test('root may call them, and becomes who it names', async () => {
      expect(await sandbox.exec('sudo id -un', { timeout: PATIENCE })).toMatchObject({
        ...{ exitCode: 0, stdout: 'root\n' },
      })
      expect(await sandbox.exec(`sudo -u ${USER} id -un`, { timeout: PATIENCE })).toMatchObject({
        ...{ exitCode: 0, stdout: `${USER}\n` },
      })
      expect(
        await sandbox.exec(`su -s /bin/sh ${USER} -c "id -un"`, { timeout: PATIENCE }),
      ).toMatchObject({ exitCode: 0, stdout: `${USER}\n` })
    })
  })

  describe('who types and reads', () => {
    test.for([
      'less /etc/passwd',
      'more /etc/passwd',
      'visudo',
      'stty size',
      'tput cols',
      'python3 -i',
      'python3 -c "input()"',
      'python3 -c "import getpass; getpass.getpass()"',
      'read -p "sure? " answer',
    ])('%s ends without one', async (command) => {
      const end = await sandbox.exec(command, { timeout: PATIENCE })
      expect(end).toMatchObject({ timedOut: false })
      expect(await sandbox.exec('echo on')).toMatchObject({ stdout: 'on\n' })
    })

    // They read what they write their errors to, as they do on any machine, and nothing ever comes from there.
    test.for(['vi /etc/passwd', 'nano /etc/passwd', 'EDITOR=vi sudoedit /etc/passwd'])(
      '%s waits without one, and is ended by its deadline',
      async (command) => {
        const end = await sandbox.exec(command, { timeout: '3s' })
        expect(end).toMatchObject({ timedOut: true, limits: ['time'] })
        expect(await sandbox.exec('echo on')).toMatchObject({ stdout: 'on\n' })
      },
    )

    test('at a terminal an editor takes the screen, is typed to, and gives it back', async () => {
      const vi = await sandbox.pty({ command: 'vi /tmp/note; echo "left $?"', size: SIZE })
      // It draws the lines that aren't there.
      await shows(vi, /~/)
      await vi.write('ihello\x1b:wq\r')
      await shows(vi, /left 0/)
      expect(await sandbox.files.readText('/tmp/note')).toBe('hello\n')

      const nano = await sandbox.pty({ command: 'nano /tmp/note; echo "left $?"', size: SIZE })
      await shows(nano, /\^X/)
      await nano.write('well, \x0f\r\x18')
      await shows(nano, /left 0/)
      expect(await sandbox.files.readText('/tmp/note')).toBe('well, hello\n')

      const less = await sandbox.pty({ command: 'less /etc/passwd; echo "left $?"', size: SIZE })
      await shows(less, /root:/)
      await less.write('q')
      await shows(less, /left 0/)
    })

    test('one that nobody leaves is ended with its screen', async () => {
      const vi = await sandbox.pty({ command: 'vi /tmp/other', size: SIZE })
      await shows(vi, /~/)
      await vi.kill(9)
      expect(await vi.result).toMatchObject({ signal: 9, killed: true })
      expect(await sandbox.exec('echo on')).toMatchObject({ stdout: 'on\n' })
    })
  })
})

async function shows(pty: Pty, wanted: RegExp): Promise<void> {
  const chunks = pty[Symbol.asyncIterator]()
  let shown = ''
  while (!wanted.test(shown)) {
    const next = await chunks.next()
    if (next.done) throw new Error(`the terminal ended with ${JSON.stringify(shown)}`)
    shown += next.value.text
  }
}

import { expect } from 'vitest'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, readText, shell, shellSpec, specFor } from './harness.ts'
import { SHELL } from './shell-texts.ts'

export function worldTests(harness: DriverHarness, driverTest: DriverTest): void {
  driverTest(
    'a world is prepared ahead as often as asked, until it is open',
    async ({ driver }) => {
      const { guest } = await driver.create(specFor(harness))
      await expect(guest.prepareWorld('main')).rejects.toMatchObject({ code: 'exists' })
      await Promise.all([guest.prepareWorld('spare'), guest.prepareWorld('spare')])
      await guest.prepareWorld('spare')
      await guest.endWorld('spare')
      await expect(guest.prepareWorld('spare')).rejects.toMatchObject({ code: 'exists' })
    },
  )

  driverTest('a grader sees the files of main, and none of its processes', async ({ driver }) => {
    const sandbox = await driver.create(specFor(harness))
    await shell(sandbox, SHELL.leaveDaemon)
    const sleeping = sandbox.guest.exec.start({
      ...shellSpec(SHELL.sleep),
      stdin: false,
      mode: 'buffered',
    })
    await sleeping.started
    await driver.openGradeWorld(sandbox, { world: 'grade', shows: 'main' })
    expect(await sleeping.result).toMatchObject({ signal: 9 })
    const seen = await shell(sandbox, SHELL.countProcesses, { world: 'grade' })
    // The world's init, the shell, ls or grep.
    const [answer, count] = seen.stdout.trim().split('\n')
    expect(answer).toBe('answer')
    expect(Number(count)).toBeLessThanOrEqual(4)
    expect(await shell(sandbox, SHELL.replace, { world: 'grade' })).toMatchObject({
      stdout: 'changed\n',
    })
    expect(await readText(sandbox, 'grade', '/work')).toBe('changed\n')
    await expect(shell(sandbox, SHELL.echo)).rejects.toMatchObject({ code: 'world_not_open' })
  })

  driverTest('a world of other layers is opened beside main, which goes on', async ({ driver }) => {
    const sandbox = await driver.create(specFor(harness))
    await shell(sandbox, SHELL.leaveDaemon)
    const grade = { world: 'stepa', shows: sandbox.spec.layers, beside: true } as const
    await driver.openGradeWorld(sandbox, grade)
    await expect(readText(sandbox, 'stepa', '/work')).rejects.toMatchObject({ code: 'not_found' })
    expect(await shell(sandbox, SHELL.echo, { world: 'stepa' })).toMatchObject({ exitCode: 0 })
    await sandbox.guest.endWorld('stepa')
    await expect(shell(sandbox, SHELL.echo, { world: 'stepa' })).rejects.toMatchObject({
      code: 'world_not_open',
    })
    expect(await shell(sandbox, SHELL.echo)).toMatchObject({ exitCode: 0 })
  })

  driverTest(
    'a clean world shows the image alone, main’s files stay readable',
    async ({ driver }) => {
      const sandbox = await driver.create(specFor(harness))
      await shell(sandbox, SHELL.leaveDaemon)
      await driver.openGradeWorld(sandbox, { world: 'grade', shows: 'image' })
      expect(await readText(sandbox, 'main', '/work')).toBe('answer\n')
      await expect(readText(sandbox, 'grade', '/work')).rejects.toMatchObject({ code: 'not_found' })
      expect(await shell(sandbox, SHELL.echo, { world: 'grade' })).toMatchObject({ exitCode: 0 })
      await expect(shell(sandbox, SHELL.echo)).rejects.toMatchObject({ code: 'world_not_open' })
    },
  )
}

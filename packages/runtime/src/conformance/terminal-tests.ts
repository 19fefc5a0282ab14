import { expect } from 'vitest'
import type { ExecHandle, ExecSpec } from '../guest/guest.ts'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, shellSpec, specFor } from './harness.ts'
import { SHELL } from './shell-texts.ts'

const FROM_START = { stdoutFrom: 0, stderrFrom: 0 }

/** Commands that run at a terminal. */
export function terminalTests(harness: DriverHarness, driverTest: DriverTest): void {
  driverTest('a terminal is typed at, resized, and ends with its command', async ({ driver }) => {
    const { guest } = await driver.create(specFor(harness))
    const handle = guest.exec.start(typedSpec())
    const screen = new Screen(handle)
    await screen.shows(/^\/dev\/pts\/0\r\n24 80\r\n$/)
    await guest.exec.resize(handle.exec, { columns: 132, rows: 43 })
    // A shell that the signal met just before it reads hears of it with the next line.
    await handle.stdin.write(Buffer.from('\n'))
    await screen.shows(/\n43 132\r\n/)
    await handle.stdin.write(Buffer.from('echo typed\n'))
    await screen.shows(/echo typed\r\ntyped\r\n$/)
    const printedBytes = screen.text.length
    const listed = [{ exec: handle.exec, terminal: { printedBytes } }]
    expect(await guest.exec.list()).toMatchObject(listed)
    await handle.stdin.write(Buffer.from('exit 7\n'))
    expect(await handle.result).toMatchObject({ exitCode: 7, killed: false })
    await guest.exec.resize(handle.exec, { columns: 1, rows: 1 })
  })

  driverTest(
    'a terminal goes on without a reader, and is attached to again',
    async ({ driver }) => {
      const { guest } = await driver.create(specFor(harness))
      const first = guest.exec.start(typedSpec())
      const seen = new Screen(first)
      await seen.shows(/24 80\r\n$/)
      first.stdin.end()
      first.detach()
      const second = guest.exec.attach(first.exec, FROM_START)
      const screen = new Screen(second)
      await screen.shows(/24 80\r\n$/)
      expect(screen.text).toBe(seen.text)
      await second.stdin.write(Buffer.from('echo again\n'))
      await screen.shows(/again\r\nagain\r\n$/)
      await guest.exec.kill(first.exec, 9)
      expect(await second.result).toMatchObject({ signal: 9, killed: true })
    },
  )

  driverTest('what has no terminal has no size', async ({ driver }) => {
    const { guest } = await driver.create(specFor(harness))
    const { exec } = guest
    const handle = exec.start({ ...shellSpec(SHELL.sleep), stdin: false, mode: 'stream' })
    await handle.started
    const size = { columns: 80, rows: 24 }
    await expect(exec.resize(handle.exec, size)).rejects.toMatchObject({ code: 'invalid' })
    await expect(exec.resize('none', size)).rejects.toMatchObject({ code: 'exec_unknown' })
    await exec.kill(handle.exec, 9)
  })
}

function typedSpec(): ExecSpec {
  const terminal = { columns: 80, rows: 24 }
  return { ...shellSpec(SHELL.typed), stdin: true, mode: 'stream', terminal }
}

/** What a terminal has printed so far. */
class Screen {
  text = ''
  readonly #output: AsyncIterator<{ readonly bytes: Uint8Array }>

  constructor(handle: ExecHandle) {
    handle.result.catch(() => {})
    this.#output = handle.output[Symbol.asyncIterator]()
  }

  /** Reads until it matches. */
  async shows(wanted: RegExp): Promise<void> {
    while (!wanted.test(this.text)) {
      const next = await this.#output.next()
      if (next.done) throw new Error(`the terminal ended with ${JSON.stringify(this.text)}`)
      this.text += Buffer.from(next.value.bytes).toString()
    }
  }
}

/** The Debian packages that building images needs. */
import { getuid } from 'node:process'
import { Failure } from '../failure.ts'
import { findProgram, runProgram } from './program.ts'

const INSTALL_TIMEOUT_MS = 10 * 60_000

/** A program, and the Debian package that brings it. */
const NEEDED = [
  { program: 'mkfs.erofs', package: 'erofs-utils' },
  { program: 'mmdebstrap', package: 'mmdebstrap' },
] as const

/** Installs what is missing, where that is allowed; else says the command that does. */
export async function ensurePackages(report: (line: string) => void): Promise<void> {
  const missing: string[] = []
  for (const need of NEEDED) if (!(await findProgram(need.program))) missing.push(need.package)
  if (missing.length === 0) return
  const command = `apt-get install -y ${missing.join(' ')}`
  const aptGet = await findProgram('apt-get')
  if (!aptGet || getuid?.() !== 0) {
    throw new Failure(
      `${missing.join(' and ')} missing`,
      `install with your package manager, on Debian: ${command}`,
    )
  }
  report(`installing ${missing.join(', ')}`)
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  const install = ['install', '-y', '--no-install-recommends', ...missing]
  let end = await runProgram(aptGet, install, { env, timeoutMs: INSTALL_TIMEOUT_MS })
  if (!end.ok) {
    // A fresh machine has no package lists yet.
    await runProgram(aptGet, ['update'], { env, timeoutMs: INSTALL_TIMEOUT_MS })
    end = await runProgram(aptGet, install, { env, timeoutMs: INSTALL_TIMEOUT_MS })
  }
  if (!end.ok) {
    throw new Failure(
      `apt-get could not install ${missing.join(', ')}:\n${end.output.trimEnd().slice(-1500)}`,
      `run: apt-get update && ${command}`,
    )
  }
}

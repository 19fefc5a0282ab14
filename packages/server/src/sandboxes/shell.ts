import { SandlotError } from '@sandlot/protocol'
import { GuestError } from '@sandlot/runtime'
import type { Lent } from '../node/lend.ts'

const USUAL = ['/bin/bash', '/bin/sh']
const EXECUTABLE = 0o111

/**
 * What a terminal runs where nobody says what: `SHELL` of the environment, or bash, or sh, whichever the sandbox has first.
 * @throws SandlotError `exec_failed` where it has none of them
 */
export async function shellOf(
  { guest }: Pick<Lent, 'guest'>,
  world: string,
  shell: string | undefined,
): Promise<string[]> {
  const wanted = shell?.startsWith('/') ? [shell, ...USUAL] : USUAL
  for (const path of wanted) if (await isProgram(guest, world, path)) return [path]
  throw new SandlotError('exec_failed', `the sandbox has no shell: none of ${wanted.join(', ')}`, {
    hint: 'Say which program the terminal is to run, such as: sandlot sandbox shell ID -- python3',
    details: { reason: 'not_found' },
  })
}

async function isProgram(guest: Lent['guest'], world: string, path: string): Promise<boolean> {
  try {
    const { kind, mode } = await guest.files.stat(world, path)
    return kind === 'file' && (mode & EXECUTABLE) !== 0
  } catch (error) {
    if (error instanceof GuestError && MISSING.has(error.code)) return false
    throw error
  }
}

const MISSING = new Set(['not_found', 'not_directory', 'permission', 'io'])

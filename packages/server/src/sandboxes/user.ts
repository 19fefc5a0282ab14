import { SandlotError } from '@sandlot/protocol'
import type { Guest } from '@sandlot/runtime'

export interface UserIds {
  readonly uid: number
  readonly gid: number
}

const PASSWD_BYTES_MAX = 2 ** 20

/** Whose new files are: a name, or `uid[:gid]`, looked up in the world's own /etc/passwd as for commands. */
export async function userIds(
  guest: Guest,
  world: string,
  user: string,
  signal: AbortSignal,
): Promise<UserIds> {
  const numbers = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(user)
  if (numbers) return { uid: Number(numbers[1]), gid: Number(numbers[2] ?? numbers[1]) }
  if (user === 'root') return { uid: 0, gid: 0 }
  const name = user.split(':')[0] ?? ''
  for (const line of (await readPasswd(guest, world, signal)).split('\n')) {
    const [found, , uid, gid] = line.split(':')
    if (found === name) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new SandlotError(
    'invalid_request',
    `user: the sandbox has no user ${JSON.stringify(user)}`,
    {
      hint: 'Name a user of its /etc/passwd, or give uid:gid.',
    },
  )
}

async function readPasswd(guest: Guest, world: string, signal: AbortSignal): Promise<string> {
  const range = { length: PASSWD_BYTES_MAX }
  const file = await guest.files.read(world, '/etc/passwd', range, { signal })
  const chunks: Uint8Array[] = []
  for await (const chunk of file.content) chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}

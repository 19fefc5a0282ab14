/** Owners of what a step copies: numbers, or names that the image's own /etc/passwd and /etc/group know. */
import type { DirectoryInode } from '../erofs/inode.ts'
import { readContent } from '../erofs/read-tree.ts'
import { sourceInvalid } from '../image-error.ts'
import { imageLimits } from '../limits.ts'
import { lookIn, walk } from './tree-path.ts'

export interface Account {
  readonly uid: number
  readonly gid: number
}

export const ROOT: Account = { uid: 0, gid: 0 }

const ID_MAX = 0xffff_fffe

/** `user`, `user:group`, or numbers. A user's name alone has the user's own group, a number alone the group of that number. */
export async function findAccount(tree: DirectoryInode, owner: string): Promise<Account> {
  const [user = '', group, ...more] = owner.split(':')
  if (more.length > 0 || user === '' || group === '') throw unknown(owner, 'is no owner')
  const id = number(user)
  const users = id === undefined ? await lines(tree, 'passwd') : []
  const entry = users.find((fields) => fields[0] === user)
  const uid = id ?? number(entry?.[2]) ?? (user === 'root' ? 0 : undefined)
  if (uid === undefined) throw unknown(user, 'is no user of the image')
  if (group === undefined) return { uid, gid: id ?? number(entry?.[3]) ?? 0 }
  const named = async () => (await lines(tree, 'group')).find((fields) => fields[0] === group)
  const gid = number(group) ?? number((await named())?.[2]) ?? (group === 'root' ? 0 : undefined)
  if (gid === undefined) throw unknown(group, 'is no group of the image')
  return { uid, gid }
}

async function lines(tree: DirectoryInode, name: 'passwd' | 'group'): Promise<string[][]> {
  const { inode } = walk(lookIn(tree), `/etc/${name}`, { last: 'follow' })
  if (inode?.kind !== 'file' || inode.sizeBytes > imageLimits.accountBytesMax) return []
  const parts: Uint8Array[] = []
  for await (const part of readContent(inode)) parts.push(part)
  const text = Buffer.concat(parts).toString('utf8')
  return text.split('\n').map((line) => line.split(':'))
}

function number(text: string | undefined): number | undefined {
  if (text === undefined || !/^[0-9]{1,10}$/.test(text)) return undefined
  const id = Number(text)
  return id <= ID_MAX ? id : undefined
}

function unknown(name: string, why: string): Error {
  return sourceInvalid(
    `${JSON.stringify(name.slice(0, 64))} ${why}.`,
    'Name a user of the image’s /etc/passwd, or give numbers as uid:gid.',
  )
}

import { readFile } from 'node:fs/promises'

/** Bytes to and from other hosts by the kernel's counters of a link; 0 where there is none. */
export async function linkBytes(link: string): Promise<number> {
  const text = await readFile('/proc/net/dev', 'utf8').catch(() => '')
  const line = text.split('\n').find((each) => each.trimStart().startsWith(`${link}:`))
  const numbers =
    line
      ?.slice(line.indexOf(':') + 1)
      .trim()
      .split(/\s+/) ?? []
  return Number(numbers[0] ?? 0) + Number(numbers[8] ?? 0)
}

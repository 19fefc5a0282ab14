/** Functions that tests run in containers: a module of its own, since it is bundled without the test. */
import { execFileSync } from 'node:child_process'
import { closeSync, readFileSync } from 'node:fs'

export function add({ a, b }: { a: number; b: number }): number {
  process.stdout.write(`adds ${a} and ${b}\n`)
  return a + b
}

export function square(n: number): number {
  return n * n
}

export async function explode(text: string): Promise<string> {
  throw new RangeError(`no good: ${text}`)
}

/** Never ends the first time. */
export async function second(text: string, { attempt }: { attempt: number }): Promise<string> {
  if (attempt > 1) return text
  return await new Promise(() => setInterval(() => {}, 1_000))
}

/** What the image has, beside Node.js. */
/** Asks with what it has for a key, and says what it has. */
export async function asksWithKey(url: string): Promise<string> {
  const key = process.env.API_KEY ?? ''
  const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
  return `${key.slice(0, 15)} ${await answer.text()}`
}

export function python(code: string): string {
  return execFileSync('python3', ['-c', code], { encoding: 'utf8' }).trim()
}

export function release(): string {
  return readFileSync('/etc/os-release', 'utf8')
}

export function flaky(n: number): number {
  if (n % 10 === 3) throw new Error(`can't do ${n}`)
  return n
}

/** Meddles with what its container is spoken to by, and may then never return. */
export async function meddle(how: 'destroy' | 'close'): Promise<string> {
  if (how === 'destroy') process.stdin.destroy()
  else {
    closeSync(0)
    await new Promise(() => {})
  }
  return how
}

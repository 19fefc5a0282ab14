import type { NodeExecEnd } from './port.ts'

/** Of what a command said last, as much as a message has room for. */
export const SAID_BYTES = 2_048

/** `exited with 3: <the last lines it said>`. */
export function endedHow(
  end: Pick<NodeExecEnd, 'exitCode' | 'signal' | 'stdout' | 'stderr'>,
): string {
  const how =
    end.exitCode === null ? `was ended by signal ${end.signal}` : `exited with ${end.exitCode}`
  return withWords(how, end)
}

/** What happened, and the last that the command said about it. */
export function withWords(what: string, end: Pick<NodeExecEnd, 'stdout' | 'stderr'>): string {
  const said = lastWords(end)
  return said === '' ? what : `${what}: ${said}`
}

/** The last that a command said: of its errors, where there are any. */
export function lastWords({ stdout, stderr }: Pick<NodeExecEnd, 'stdout' | 'stderr'>): string {
  return Buffer.from(stderr.length > 0 ? stderr : stdout)
    .toString()
    .trim()
    .slice(-SAID_BYTES)
}

import { readFile } from 'node:fs/promises'

/**
 * Of what daemon and agent say to one another: docs/wire.md counts it, and each change there raises it. The agent says its own in
 * its hello, and has it in its file. One that is newer understands all that this daemon says.
 */
export const GUEST_REVISION = 7

/** The first that knows terminals. Memory that was saved before holds an agent of an earlier one. */
export const TERMINAL_REVISION = 4

/** The first that counts the processes of each user. */
export const USERS_REVISION = 7

const SAID = /sandlot-agent [\w.-]{1,32} \(revision (\d{1,6})\)/

/** The revision in what an agent calls itself; 0 where it is from before there were any. */
export function revisionOf(agent: string): number {
  return Number(SAID.exec(agent)?.[1] ?? 0)
}

/** The revision of an agent that doesn't run, by its file. */
export async function fileRevision(path: string): Promise<number> {
  return revisionOf(await readFile(path, 'latin1'))
}

/** What to say of one that is too old. */
export function describeOld(path: string, revision: number): string {
  return `${path} is of another version: revision ${revision}, where this daemon needs ${GUEST_REVISION}`
}

export const AGENT_MEND =
  'run ./sandlot setup, and unset SANDLOT_AGENT and SANDLOT_HELPER where they name programs of another version'

/** What to do next, for a person at a terminal: options and verbs in place of what a program would call. */
import { ERROR_CATALOGUE, type ErrorCode, type SandlotError } from '@sandlot/protocol'

/** Of the codes whose own hint speaks of a program. What a place knows better stays as it is said there. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  invalid_request: 'Correct what the message names; `--help` behind the verb shows its options.',
  image_unknown:
    'Build it first with `sandlot images build`, or name an image that `sandlot images list` shows.',
  sandbox_paused: 'Resume it first: `sandlot sandbox resume ID`.',
  snapshot_in_use:
    'Stop what was started from it, or delete it with --force: what runs goes on, and nothing more starts from it.',
  snapshot_incompatible:
    'The message names what differs: take the snapshot again on this machine, or start from its files with --or-cold.',
  template_unknown: '`sandlot templates list` shows those that are there.',
  file_is_directory: 'Name a file.',
  file_exists: 'Remove it first.',
  directory_not_empty: 'Remove what is in it first.',
  no_space: 'The sandbox’s disk is full: ask for more with --disk when it is created.',
  sandbox_limit:
    'A limit of the sandbox was met: ask for more with --memory, --cpu, --disk, --pids, --pids-per-user, --open-files or --file-size when it is created.',
  run_exists:
    'Take another name, or say --if-exists attach to have its results, --if-exists replace to run it again.',
  run_differs:
    'A run of this name has another specification: take another name, or once it is finished say --if-exists replace.',
  secret_unknown: 'Set it first: `sandlot secrets set NAME`.',
  port_refused:
    'Start a server on this port in the sandbox, on 127.0.0.1 or 0.0.0.0: `sandlot sandbox ports ID` tells what listens.',
  port_failed:
    'The program that listens there broke off, or speaks another protocol than HTTP. `sandlot port-forward ID PORT` carries any.',
  queue_unknown: 'A program makes it, before anything is put or read: check the name.',
  task_conflict: 'Two different tasks have the same key: give each its own.',
}

export function hintFor({ code, hint }: Pick<SandlotError, 'code' | 'hint'>): string {
  const said = (hint === ERROR_CATALOGUE[code].hint ? HINTS[code] : undefined) ?? hint
  return said
    .replace(/ifExists: '(\w+)'/g, '--if-exists $1')
    .replace(/ in network, too, as \{ allow: \["([^"]+)"\] \}/, ', too, as --allow $1')
}

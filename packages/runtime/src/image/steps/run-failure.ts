/** Why a step that runs a command has no layer, in words for a person. */
import { formatDuration, formatSize } from '@sandlot/protocol'
import type { ExecResult, Guest } from '../../guest/guest.ts'
import { GuestError } from '../../guest/guest-error.ts'
import { LayerTooLarge } from '../erofs/block-file.ts'
import { ImageError } from '../image-error.ts'
import { imageLimits } from '../limits.ts'
import { TarError } from '../tar/header.ts'
import type { StepContext } from './apply.ts'
import type { Command } from './run.ts'

/** The files that it left are no layer. */
export function notKept(error: unknown): ImageError | undefined {
  if (!(error instanceof TarError || error instanceof LayerTooLarge)) return undefined
  return new ImageError(
    'image_build_failed',
    `what the command left can't be kept: ${error.message}`,
    {
      hint: 'Let it remove what nobody needs at its end.',
      cause: error,
    },
  )
}

export function notStarted(
  error: unknown,
  { argv, cwd, user }: Pick<Command, 'argv' | 'cwd' | 'user'>,
): ImageError | undefined {
  if (!(error instanceof GuestError)) return undefined
  const [program] = argv
  const hints: Partial<Record<GuestError['code'], string>> = {
    not_found: `The image has no ${String(program)}, or no directory ${String(cwd)}: give the command as an argument list, name another shell, or take a base that has it.`,
    invalid: `The image may not know the user ${user}: its /etc/passwd is looked up; numbers always do.`,
    permission: `The user ${user} may not run ${String(program)} in ${String(cwd)}.`,
  }
  const hint = hints[error.code]
  if (hint === undefined) return undefined
  return new ImageError('image_build_failed', `the command did not start: ${error.message}`, {
    hint,
    cause: error,
  })
}

/** It ran, and did not end well. `met`: limits that may be why. */
export function commandFailed(
  { exitCode, signal, timedOut }: ExecResult,
  { timeoutMs }: Command,
  { logTail, met }: Pick<StepContext, 'logTail'> & { readonly met: string | undefined },
): ImageError {
  const how = timedOut
    ? `did not end within ${formatDuration(timeoutMs)}`
    : exitCode === undefined
      ? `was ended by signal ${signal}`
      : `ended with exit code ${exitCode}`
  const tail = logTail()
  const last = tail.slice(-imageLimits.logLinesInMessage).join('\n')
  const full = met === undefined ? '' : ` (${met})`
  const message = `the command ${how}${full}${last === '' ? ', and wrote nothing' : `:\n${last}`}`
  return new ImageError('image_build_failed', message, {
    hint: met
      ? 'Let it do less at once, or write less in one step: a step has what the daemon gives to builds.'
      : timedOut
        ? 'Its last lines say how far it came. Give the step more time by its `timeout`, or let it do less.'
        : 'Its last lines say why. From the network it gets what its policy allows, by default the package mirrors alone.',
    logTail: tail,
    ...(exitCode === undefined ? {} : { exitCode }),
  })
}

/** Nearly full is full: the last write is one that did not fit. */
const FULL_SHARE = 0.98

/** What the step took all of; undefined where nothing is known. */
export async function limitsMet(guest: Guest): Promise<string | undefined> {
  const stats = await guest.stats({ timeoutMs: imageLimits.lastLookMs }).catch(() => undefined)
  const world = stats?.worlds[0]
  if (!world) return undefined
  const { upperUsedBytes, upperTotalBytes, upperInodesUsed, upperInodesTotal, pidsRefused } = world
  const isFull = (used: number, total: number) => total > 0 && used >= FULL_SHARE * total
  if (isFull(upperUsedBytes, upperTotalBytes)) {
    return `its files took all of the ${formatSize(upperTotalBytes)} that a step has for them`
  }
  if (isFull(upperInodesUsed, upperInodesTotal)) {
    return `it made all of the ${upperInodesTotal} files that a step may make`
  }
  return pidsRefused > 0 ? 'it was refused more processes than a step may have' : undefined
}

import { z } from 'zod'
import { command, execOptions } from './exec.ts'
import { LIMITS } from './limits.ts'

/** A command that runs after a restore, as it is kept. `timeout` in milliseconds. */
export const restoreCommand = execOptions.extend({ timeout: z.number().optional() })
export type RestoreCommand = z.output<typeof restoreCommand>

const TOO_LONG = `longer than ${LIMITS.onRestoreMs / 60_000} minutes, the most that a start waits for it`
const timeout = execOptions.shape.timeout.refine((ms = 0) => ms <= LIMITS.onRestoreMs, TOO_LONG)

/**
 * Runs to its end in each sandbox that begins with saved memory, before anybody is given that sandbox; where it doesn't exit with 0, that
 * start fails with `on_restore_failed` and leaves nothing. Default of its `timeout`: one minute.
 */
export const onRestore = z.union([
  command.transform((only) => ({ command: only })),
  execOptions.extend({ timeout }),
])
export type OnRestoreInput = z.input<typeof onRestore>

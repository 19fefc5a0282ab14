import { z } from 'zod'
import { argumentBytes, environment, kernelText, userName } from './kernel-text.ts'
import { LIMITS } from './limits.ts'
import { deadlineOf } from './quantity.ts'

/** A command: an argument array, or text for `sh -c`. */
export const command = z.union([
  kernelText
    .min(1, 'the command is empty')
    .refine(
      (text) => argumentBytes([text]) <= LIMITS.argvBytes,
      `longer than ${LIMITS.argvBytes} bytes: write it to a file in the sandbox and run that`,
    ),
  z
    .array(kernelText)
    .min(1, 'the command is empty')
    .max(LIMITS.argvItems)
    .refine(
      (argv) => argumentBytes(argv) <= LIMITS.argvBytes,
      `longer than ${LIMITS.argvBytes} bytes: write it to a file in the sandbox and run that`,
    ),
])
export type Command = z.infer<typeof command>

/** The argument array of a command. */
export function argvOf(value: Command): string[] {
  return typeof value === 'string' ? ['/bin/sh', '-c', value] : value
}

/** How large a terminal is, in characters. */
export const terminalSize = z
  .object({
    columns: z.number().int().min(1).max(LIMITS.terminalCells),
    rows: z.number().int().min(1).max(LIMITS.terminalCells),
  })
  .strict()
export type TerminalSize = z.infer<typeof terminalSize>

/** A terminal for a command: its stdin, its stdout and its stderr, and what it is controlled by. */
export const terminal = terminalSize.extend({
  /** What it is told as `TERM`, unless `env` says it. Default `xterm-256color`. */
  term: z
    .string()
    .regex(
      /^[A-Za-z0-9._+-]{1,64}$/,
      'a terminal has 1 to 64 letters, digits and . _ + - as its name',
    )
    .optional(),
})
export type Terminal = z.infer<typeof terminal>

export const TERM_DEFAULT = 'xterm-256color'

export const execOptions = z
  .object({
    command,
    env: environment.optional(),
    cwd: kernelText.max(LIMITS.pathBytes).optional(),
    /** A name, or `uid[:gid]`. Default: the image's user. */
    user: userName.optional(),
    /** At the deadline everything the command started is killed, and the result says `timedOut`. Default: none. */
    timeout: deadlineOf(1, 'no deadline').optional(),
  })
  .strict()
export type ExecOptionsInput = z.input<typeof execOptions>

/** `POST /v1/sandboxes/:id/exec`: runs to its end, output kept as head and tail. */
export const execRun = execOptions.extend({
  /** Written to its stdin, then closed. Default: no stdin. */
  stdinBase64: z.base64().optional(),
})

export const outputCount = z.object({
  totalBytes: z.number(),
  /** Bytes that were not kept: the middle of a flood. */
  droppedBytes: z.number(),
})

/** Limits that a command can meet and be told of: its own deadline, and the quotas that are flags of an episode. */
export const EXEC_LIMITS = [
  ...(['time', 'output', 'pids', 'processesPerUser'] as const),
  ...(['disk', 'fileSize', 'cpu'] as const),
] as const
export type ExecLimit = (typeof EXEC_LIMITS)[number]

/** How a command ended. Exactly one of `exitCode` and `signal` is a value, the other null. */
export const execEnd = z.object({
  exec: z.string(),
  exitCode: z.number().nullable(),
  signal: z.number().nullable(),
  timedOut: z.boolean(),
  /** Ended by `exec.kill` or by the deadline. */
  killed: z.boolean(),
  durationMs: z.number(),
  stdout: outputCount,
  stderr: outputCount,
  /** Processes that it started and that still run. */
  left: z.number(),
  /**
   * Limits that were met while it ran; another command of the sandbox may have had a part in it. A program alone sees that it may open no
   * more files (EMFILE), or that a file is too large where it ignores the signal (EFBIG).
   */
  limits: z.array(z.enum(EXEC_LIMITS)).readonly().default([]),
})
export type ExecEnd = z.infer<typeof execEnd>

/** Answer of a buffered exec. Text that is not UTF-8 is replaced in `…Text`, and stands exactly in `…Base64`. */
export const execAnswer = execEnd.extend({
  stdoutText: z.string(),
  stderrText: z.string(),
  stdoutBase64: z.string().optional(),
  stderrBase64: z.string().optional(),
})

export const execView = z.object({
  exec: z.string(),
  world: z.string(),
  running: z.boolean(),
  pid: z.number(),
  command: z.string(),
  startedAtMs: z.number(),
  processes: z.number(),
  /** It runs at a terminal, and has printed so much. Null: it has none. */
  terminal: z.object({ printedBytes: z.number() }).nullable(),
})
export type ExecView = z.infer<typeof execView>

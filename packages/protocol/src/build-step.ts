import { z } from 'zod'
import type { ImageSource } from './image.ts'
import { argumentBytes, environment, kernelText, USER_FORM, userName } from './kernel-text.ts'
import { LIMITS } from './limits.ts'
import { networkPolicy } from './network.ts'
import { durationOf, formatDuration } from './quantity.ts'
import { resources } from './resources.ts'
import { wholeText } from './whole-text.ts'

const path = kernelText.min(1).max(LIMITS.pathBytes)
const words = z.array(kernelText).min(1).max(LIMITS.argvItems)
const ownership = {
  /** `user`, `user:group` or numbers; names are looked up in the image. Default: as they were. */
  owner: kernelText.min(1).max(LIMITS.pathBytes).optional(),
  /** Permission bits of all that is copied. Default: as they were. */
  mode: z.number().int().min(0).max(0o7777).optional(),
}

/**
 * With `expand`, `${NAME}` in the values of a step (of a copy: `to` and `owner`) is what the image has for that variable before it, or
 * nothing. `${NAME:-word}` is `word` where it has nothing, `${NAME:+word}` where it has something, and `${NAME:?word}` fails the build where it
 * has nothing; without the colon an empty value is one. `$$` is a dollar sign, and `$}` in a word a brace.
 */
const expansion = { expand: z.boolean().optional() }

/**
 * One step over an image. `run`, `function` and the copies make a layer; the others change the configuration alone. A relative path is
 * below the working directory that holds at that step.
 */
export function buildStepOf<S extends z.ZodType<ImageSource>>(source: S) {
  return z.discriminatedUnion('kind', [
    z
      .object({
        kind: z.literal('run'),
        /** Text for the image's shell, or an argument list. */
        command: z.union([
          kernelText
            .min(1)
            .refine(
              (text) => argumentBytes([text]) <= LIMITS.stepTextBytes,
              `longer than ${LIMITS.stepTextBytes} bytes: copy a script into the image and run that`,
            ),
          words.refine(
            (argv) => argumentBytes(argv) <= LIMITS.argvBytes,
            `longer than ${LIMITS.argvBytes} bytes: give it as text, or copy a script into the image and run that`,
          ),
        ]),
        /** Variables of this command alone. */
        env: environment.optional(),
        /** Default: the build's. */
        network: networkPolicy.optional(),
        /** At the deadline all that it started is killed, and the build fails. Default: 1 hour. It is no part of what the step is. */
        timeout: durationOf(1_000, '1 hour')
          .refine((ms) => ms <= LIMITS.stepMsMax, `longer than ${formatDuration(LIMITS.stepMsMax)}`)
          .optional(),
      })
      .strict(),
    /**
     * Unpacks a tar of the client below the directory `to`, which is made when it is missing. With `file` the tar holds one file: it
     * becomes `to`, or goes into it where the image has a directory there.
     */
    z
      .object({
        kind: z.literal('copy'),
        blob: z.string(),
        /**
         * What the step is known by in place of the tar's digest: that of its entries without their times, see `copiedEntryLine`. With another
         * one than the tar's the step fails.
         */
        content: z.string().optional(),
        to: path,
        file: z.boolean().optional(),
        ...ownership,
        ...expansion,
      })
      .strict(),
    /**
     * Copies out of another source's file system; a path may hold `*`, `?` and `[…]`. The content of a directory goes below the directory
     * `to`. A file goes into it where `to` ends in a slash, is a directory in the image, or several are copied; else it becomes `to`.
     */
    z
      .object({
        kind: z.literal('copyFrom'),
        source,
        paths: z.array(path).min(1),
        to: path,
        ...ownership,
        ...expansion,
      })
      .strict(),
    /**
     * What a function of the client leaves in a sandbox. When its turn comes, the answer of the build has a `functionLine`; the client runs it
     * and says so by `finishFunction`. One runs at a time, whoever asks; where its client leaves, or it fails, the next who waits has his turn.
     */
    z
      .object({
        kind: z.literal('function'),
        /** What it is known by, since its code can't be compared. */
        key: wholeText.min(1).max(LIMITS.keyLength),
        /** Default: the build's. */
        network: networkPolicy.optional(),
        /** Of its sandbox. */
        resources: resources.optional(),
        /** By what the client finds it again; no part of what it is. */
        call: z.number().int().min(0).optional(),
        /** Whose it is, as the daemon knows: that of another project is another one. */
        project: z.string().optional(),
      })
      .strict(),
    z.object({ kind: z.literal('env'), env: environment, ...expansion }).strict(),
    /** Made when it is missing, by root as in a Dockerfile. */
    z.object({ kind: z.literal('workdir'), path, ...expansion }).strict(),
    z
      .object({
        kind: z.literal('user'),
        user: kernelText.min(1).max(LIMITS.pathBytes),
        ...expansion,
      })
      .strict()
      .refine(({ user, expand }) => expand || userName.safeParse(user).success, {
        path: ['user'],
        error: USER_FORM,
      }),
    /** What a `run` of text is given to. Default: `/bin/sh -c`. */
    z.object({ kind: z.literal('shell'), command: words }).strict(),
    /** What a start of the image runs. Without one of the two, the base's is kept; a new `entrypoint` alone ends the base's `command`. */
    z
      .object({
        kind: z.literal('command'),
        entrypoint: z.array(kernelText).optional(),
        command: z.array(kernelText).optional(),
      })
      .strict(),
    z.object({ kind: z.literal('labels'), labels: z.record(z.string(), z.string()) }).strict(),
  ])
}

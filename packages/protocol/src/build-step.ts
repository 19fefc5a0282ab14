import { z } from 'zod'
import type { ImageSource } from './image.ts'
import { LIMITS } from './limits.ts'
import { networkPolicy } from './network.ts'

const path = z.string().min(1).max(LIMITS.pathBytes)
const words = z.array(z.string()).min(1).max(LIMITS.argvItems)
const ownership = {
  /** `user`, `user:group` or numbers; names are looked up in the image. Default: root. */
  owner: z.string().min(1).max(128).optional(),
  /** Permission bits of all that is copied. Default: as they were. */
  mode: z.number().int().min(0).max(0o7777).optional(),
}

/**
 * One step over an image. `run` and the copies make a layer; the others change the configuration alone. A relative path is
 * below the working directory that holds at that step.
 */
export function buildStepOf<S extends z.ZodType<ImageSource>>(source: S) {
  return z.discriminatedUnion('kind', [
    z
      .object({
        kind: z.literal('run'),
        /** Text for the image's shell, or an argument list. */
        command: z.union([z.string().min(1), words]),
        /** Variables of this command alone. */
        env: z.record(z.string(), z.string()).optional(),
        /** Default: the build's. */
        network: networkPolicy.optional(),
      })
      .strict(),
    /** Unpacks a tar of the client: a directory's content, or one file under its name. */
    z.object({ kind: z.literal('copy'), blob: z.string(), to: path, ...ownership }).strict(),
    /** Copies out of another source's file system. */
    z
      .object({
        kind: z.literal('copyFrom'),
        source,
        paths: z.array(path).min(1),
        to: path,
        ...ownership,
      })
      .strict(),
    z.object({ kind: z.literal('env'), env: z.record(z.string(), z.string()) }).strict(),
    z.object({ kind: z.literal('workdir'), path }).strict(),
    z.object({ kind: z.literal('user'), user: z.string().min(1).max(128) }).strict(),
    /** What a `run` of text is given to. Default: `/bin/sh -c`. */
    z.object({ kind: z.literal('shell'), command: words }).strict(),
    z.object({ kind: z.literal('command'), command: z.array(z.string()) }).strict(),
    z.object({ kind: z.literal('labels'), labels: z.record(z.string(), z.string()) }).strict(),
  ])
}

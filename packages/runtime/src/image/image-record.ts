import { readFile } from 'node:fs/promises'
import { idOf, imageView } from '@sandlot/protocol'
import { z } from 'zod'
import { recordUnreadable } from './image-error.ts'

export const imageIdSchema = idOf('image')
const recordSchema = imageView.extend({
  intermediate: z.boolean().optional(),
  joinedOf: imageIdSchema.optional(),
})
export type ImageRecord = z.infer<typeof recordSchema>
export const keySchema = z.object({ image: imageIdSchema })

/** Undefined where there is none. Fails with `image_source_invalid`, which names the file, where it can't be read. */
export async function readRecord(path: string): Promise<ImageRecord | undefined> {
  try {
    const document = await readJson(path)
    return document === undefined ? undefined : recordSchema.parse(document)
  } catch (cause) {
    if (cause instanceof SyntaxError || cause instanceof z.ZodError)
      throw recordUnreadable(path, cause)
    throw cause
  }
}

export function ifSyntax(cause: unknown): undefined {
  if (!(cause instanceof SyntaxError)) throw cause
}

/** Undefined where there is no such file. */
export async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw cause
  }
}

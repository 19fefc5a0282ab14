/** Which contents a build will read: those of what is built already are not needed, and need not be there. */
import type { BuildStep, ImageSource } from '@sandlot/protocol'
import type { HasBlob } from './build.ts'
import type { Image } from './image.ts'
import { blobsUnknown } from './image-error.ts'
import type { ImageFiles } from './image-files.ts'
import { sourceKey, stepKeys } from './source-key.ts'

export interface BlobCheck {
  readonly files: ImageFiles
  readonly hasBlob: HasBlob
  readonly signal: AbortSignal | undefined
}

/** Of a source that is normalised and resolved. @throws ImageError `blob_unknown` with all that are not there */
export async function checkBlobs(source: ImageSource, check: BlobCheck): Promise<void> {
  const needed = new Set<string>()
  await addNeeded(source, check.files, needed)
  const missing: string[] = []
  for (const blob of needed) {
    if (!(await check.hasBlob(blob, { signal: check.signal }))) missing.push(blob)
  }
  if (missing.length > 0) throw blobsUnknown(missing)
}

/** The image of the last step that is built, and how many steps that makes. */
export async function lastBuilt(
  files: ImageFiles,
  keys: readonly string[],
): Promise<{ readonly done: number; readonly image: Image | undefined }> {
  for (let done = keys.length; done > 0; done--) {
    const image = await files.findByKey(keys[done - 1] ?? '')
    if (image) return { done, image }
  }
  return { done: 0, image: undefined }
}

async function addNeeded(
  source: ImageSource,
  files: ImageFiles,
  needed: Set<string>,
): Promise<void> {
  if (source.kind === 'built') {
    const { done } = await lastBuilt(files, stepKeys(source))
    if (done === 0) await addNeeded(source.base, files, needed)
    for (const step of source.steps.slice(done)) await addOfStep(step, files, needed)
  } else if ('blob' in source && !(await files.findByKey(sourceKey(source)))) {
    needed.add(source.blob)
  }
}

async function addOfStep(step: BuildStep, files: ImageFiles, needed: Set<string>): Promise<void> {
  if (step.kind === 'copy') needed.add(step.blob)
  if (step.kind === 'copyFrom') await addNeeded(step.source, files, needed)
}

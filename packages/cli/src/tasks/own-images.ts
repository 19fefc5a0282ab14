/** Images that a task names: what it starts from, and what it is graded in. */
import type { ImageLike, SandlotError, TaskOptions } from 'sandlot'
import type { Built } from './build-images.ts'

export function imagesOf({ from, grade, steps = [] }: TaskOptions): readonly ImageLike[] {
  const all = [from, grade?.from, ...steps.map((step) => step.grade?.from)]
  return all.filter((each) => each !== undefined)
}

/** The task with images that are there, or why one of them can't be. */
export function withBuilt(
  own: TaskOptions,
  images: ReadonlyMap<ImageLike, Built>,
): { readonly own: TaskOptions } | { readonly error: SandlotError } {
  for (const from of imagesOf(own)) {
    const built = images.get(from)
    if (built && 'error' in built) return built
  }
  const named = <T extends { readonly from?: ImageLike }>(each: T): T => {
    const built = each.from === undefined ? undefined : images.get(each.from)
    return built && 'from' in built ? { ...each, from: built.from } : each
  }
  const { grade, steps } = own
  return {
    own: {
      ...named(own),
      ...(grade ? { grade: named(grade) } : {}),
      ...(steps
        ? {
            steps: steps.map((step) => (step.grade ? { ...step, grade: named(step.grade) } : step)),
          }
        : {}),
    },
  }
}

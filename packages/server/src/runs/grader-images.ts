import type { TaskPut } from '@sandlot/protocol'

type Graded = Pick<TaskPut, 'program' | 'grade'>

/** Puts ids of images in the place of what tasks say that they are graded in. `image`: the id of one, asked for once. */
export function graderImages(image: (from: string) => Promise<string>) {
  const found = new Map<string, Promise<string>>()

  async function named<T extends { readonly from?: string | undefined }>(grade: T): Promise<T> {
    const { from } = grade
    if (from === undefined) return grade
    const id = found.get(from) ?? image(from)
    found.set(from, id)
    return { ...grade, from: await id }
  }

  return async <T extends Graded>(task: T): Promise<T> => {
    const { program, grade } = task
    const steps: NonNullable<typeof program>['steps'] = program?.steps && []
    for (const step of program?.steps ?? []) {
      steps?.push(step.grade ? { ...step, grade: await named(step.grade) } : step)
    }
    return {
      ...task,
      ...(program ? { program: { ...program, ...(steps ? { steps } : {}) } } : {}),
      ...(grade ? { grade: await named(grade) } : {}),
    }
  }
}

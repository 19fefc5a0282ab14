import { conflict } from '../http/idempotency.ts'
import { SERVER_LIMITS } from '../limits.ts'

interface Kept<T> {
  readonly digest: string
  readonly answer: Promise<T>
  sizeBytes: number
}

/**
 * Answers to commands that were sent with an idempotency key, in memory: nothing on the path of a command waits for the disk. After
 * a restart the agent still knows the command itself.
 */
export class ExecAnswers<T> {
  readonly #kept = new Map<string, Kept<T>>()
  #sizeBytes = 0

  async once(
    name: string,
    digest: string,
    work: () => Promise<T>,
    sizeOf: (answer: T) => number,
  ): Promise<T> {
    const before = this.#kept.get(name)
    if (before) {
      if (before.digest !== digest) throw conflict()
      return await before.answer
    }
    const kept: Kept<T> = { digest, answer: work(), sizeBytes: 0 }
    this.#kept.set(name, kept)
    try {
      const answer = await kept.answer
      kept.sizeBytes = sizeOf(answer)
      this.#sizeBytes += kept.sizeBytes
      this.#forgetOldest()
      return answer
    } catch (error) {
      this.#kept.delete(name)
      throw error
    }
  }

  #forgetOldest(): void {
    for (const [name, { sizeBytes }] of this.#kept) {
      const { execAnswers, execAnswerBytes } = SERVER_LIMITS
      if (this.#kept.size <= execAnswers && this.#sizeBytes <= execAnswerBytes) return
      this.#kept.delete(name)
      this.#sizeBytes -= sizeBytes
    }
  }
}

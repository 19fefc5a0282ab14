/** Thrown by an episode to say that the model failed, and not the policy. `ctx.model` throws it by itself. */
export class ModelError extends Error {
  override readonly name = 'ModelError'
}

/** Also one of another copy of this package. */
export function isModelError(thrown: unknown): boolean {
  return thrown instanceof Error && (thrown instanceof ModelError || thrown.name === 'ModelError')
}

/** A failure that a person can mend: what happened, and the next command to type. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly hint: string

  constructor(message: string, hint: string, options?: { cause?: unknown }) {
    super(message, options)
    this.hint = hint
  }
}

/** What was asked for can't be: nothing was tried. */
export class Mistake extends Failure {}

/** What every step of the set-up is given. */
export interface Step {
  /** Gets a line for each thing that has to be brought. */
  readonly report: (line: string) => void
  /** Aborted: the step ends what it started, and throws the signal's reason. */
  readonly signal?: AbortSignal
}

/** The signal, where there is one, as the options of a call take it. */
export function signalOf({ signal }: Pick<Step, 'signal'>): { readonly signal?: AbortSignal } {
  return signal ? { signal } : {}
}

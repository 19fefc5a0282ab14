/** A file of the repository that is made, whole or in part, from the sources. */
export interface Document {
  /** From the top of the repository. */
  readonly path: string
  /** What must stand there now. `current` is what stands there, for documents of which only blocks are made. */
  readonly text: (current: string) => string | Promise<string>
}

/** The command that writes every document again. */
export const MEND = 'npm run docs'

/** First line of a document that is made as a whole. */
export const NOTICE = `<!-- Made from the sources by \`${MEND}\`; changes by hand are lost. -->`

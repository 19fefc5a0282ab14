import { z } from 'zod'

const HALF_CHARACTER = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

/** Text that has bytes: half a character, as a text that was cut may end in, has none, and could be looked up by nobody. */
export const wholeText = z
  .string()
  .refine((text) => !HALF_CHARACTER.test(text), 'holds half a character (a lone surrogate)')

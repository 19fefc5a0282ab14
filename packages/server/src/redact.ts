/**
 * What no line of a log, no error and no record of the audit may show. The one place that knows how secrets look: keys (`sk_…`) and
 * signed tokens (`st_…`, `sf_…`, `sp_…`), wherever in a text, and values of headers and environments, by their names.
 */
const TOKENS = /\b(sk|st|sf|sp)_[\w-]{16,}(?:\.[\w-]+)?/g

/** The text with `sk_(secret)` in place of each. */
export function redacted(text: string): string {
  return text.includes('_') ? text.replace(TOKENS, '$1_(secret)') : text
}

/** Fields of log lines that are never shown, as pino names them. */
export const SECRET_FIELDS = [
  ...['authorization', 'cookie', 'apiKey', 'key', 'token', 'secret', 'secrets', 'env'],
  ...['*.authorization', '*.cookie', '*.apiKey', '*.token', '*.secret', '*.secrets', '*.env'],
  ...['*.headers.authorization', 'headers.authorization', 'headers.cookie'],
]

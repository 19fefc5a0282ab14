/**
 * What no line of a log, no error and no record of the audit may show. The one place that knows how secrets look: keys (`sk_…`) and
 * signed tokens (`st_…`, `sf_…`, `sp_…`, and those of ports), wherever in a text, and values of headers and environments, by their names.
 */
const TOKENS = /\b(sk|st|sf|sp)_[\w-]{16,}(?:\.[\w-]+)?/g
/** As `ports/port-token.ts` writes them: what they lead to may be seen, by what right not. */
const PORT_TOKENS = /\b(\d{1,5}-[a-z0-9]{20}-[a-z0-9]{1,8}-)[a-z2-7]{28}\b/g

/** The text with `sk_(secret)` in place of each. */
export function redacted(text: string): string {
  return text.replace(TOKENS, '$1_(secret)').replace(PORT_TOKENS, '$1(secret)')
}

/** Fields of log lines that are never shown, as pino names them. */
export const SECRET_FIELDS = [
  ...['authorization', 'cookie', 'apiKey', 'key', 'token', 'secret', 'secrets', 'env'],
  ...['*.authorization', '*.cookie', '*.apiKey', '*.token', '*.secret', '*.secrets', '*.env'],
  ...['*.headers.authorization', 'headers.authorization', 'headers.cookie'],
]

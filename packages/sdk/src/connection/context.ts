import type { Connection } from './connection.ts'
import type { Http } from './http.ts'

/** What everything of one client works with. */
export interface ClientContext {
  readonly http: Http
  readonly connection: Connection
}

/** An option of everything that waits. */
export interface Waiting {
  readonly signal?: AbortSignal
}

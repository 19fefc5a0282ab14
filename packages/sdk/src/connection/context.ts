import type { Connection } from './connection.ts'
import type { Http } from './http.ts'
import type { Notices } from './notices.ts'

/** What everything of one client works with. */
export interface ClientContext {
  readonly http: Http
  readonly connection: Connection
  readonly notices: Notices
}

/** An option of everything that waits. */
export interface Waiting {
  readonly signal?: AbortSignal
}

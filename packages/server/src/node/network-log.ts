import type { RelayNews } from '@sandlot/runtime'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'

/**
 * The log of one sandbox's connections: each target once, refusals as warnings, so many in a minute and in all. What is inside
 * can't fill the log by asking.
 */
export function connectionLog(
  { log, now }: { readonly log: Logger; readonly now: () => number },
  sandbox: string,
): (news: RelayNews) => void {
  const { connectionLines, connectionLinesAMinute } = SERVER_LIMITS
  const logged = new Set<string>()
  let minuteEndsMs = 0
  let left = 0
  let unlogged = 0
  return (news) => {
    const key = `${news.target} ${news.outcome}`
    if (logged.has(key)) return
    if (now() >= minuteEndsMs) {
      minuteEndsMs = now() + 60_000
      left = connectionLinesAMinute
    }
    if (left === 0 || logged.size >= connectionLines) {
      unlogged += 1
      return
    }
    logged.add(key)
    left -= 1
    const { target, protocol, outcome } = news
    const fields = { sandbox, target, protocol, outcome, ...(unlogged > 0 ? { unlogged } : {}) }
    unlogged = 0
    if (news.outcome === 'allowed') log.info(fields, 'a connection out of a sandbox')
    else log.warn(fields, `a connection out of a sandbox was refused: ${news.outcome}`)
    if (left === 0) log.warn({ sandbox }, 'more of its connections in this minute are not logged')
  }
}

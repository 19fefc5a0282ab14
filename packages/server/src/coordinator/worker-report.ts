import { LIMITS, type WorkerReport } from '@sandlot/protocol'
import { COORDINATOR_LIMITS } from './limits.ts'

/**
 * What of a worker's report is taken into the log: bounded, and with data that is data. A report that breaks a bound is one that
 * says `invalid`: the worker's code returned something that is no result.
 */
export function boundedReport(report: WorkerReport): WorkerReport {
  switch (report.kind) {
    case 'returned':
      return boundedData(report)
    case 'threw':
    case 'model_failed':
    case 'invalid':
      return { kind: report.kind, cause: boundedCauses(report.cause) }
    case 'aborted':
      return report
  }
}

function boundedData(report: Extract<WorkerReport, { kind: 'returned' }>): WorkerReport {
  const { dataJson, dataBlob } = report
  if (dataJson === undefined) return report
  if (dataBlob !== undefined) return invalid('the result has its data twice: as JSON and as a blob')
  if (Buffer.byteLength(dataJson) > LIMITS.inlineBytes) {
    return invalid(
      `the data has more than ${LIMITS.inlineBytes} bytes inline: send it as a blob and name its digest`,
    )
  }
  try {
    JSON.parse(dataJson)
    return report
  } catch {
    return invalid('the data is not JSON')
  }
}

export function invalid(cause: string): WorkerReport {
  return { kind: 'invalid', cause: [cause] }
}

/** From the outside in, so the first ones are kept. */
function boundedCauses(causes: readonly string[]): string[] {
  let left: number = COORDINATOR_LIMITS.causeCharacters
  const kept: string[] = []
  for (const cause of causes) {
    if (left <= 0) break
    kept.push(cause.slice(0, left))
    left -= cause.length
  }
  return kept
}

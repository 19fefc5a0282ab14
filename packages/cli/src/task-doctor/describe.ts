/** What `sandlot doctor tasks` prints for a person. */
import { formatDuration } from '@sandlot/protocol'
import { formatTable } from '../output/table.ts'
import { CONDITIONS, type Diagnosis, isUnfit, type Tally } from './diagnose.ts'

const WHY_SHOWN = 200

/** The worst first, those of which nothing is to be said at the end; then one line that counts. */
export function describeDiagnoses(diagnoses: readonly Diagnosis[]): string {
  const sorted = [...diagnoses].sort((a, b) => rank(a) - rank(b))
  const rows = sorted.map((diagnosis) => [
    wordOf(diagnosis),
    diagnosis.key,
    share(diagnosis.gold),
    share(diagnosis.null),
    durationText(diagnosis.goldP95Ms),
    durationText(diagnosis.timeoutMs),
    durationText(diagnosis.suggestedTimeoutMs),
    whyOf(diagnosis),
  ])
  const headings = ['', 'TASK', 'GOLD', 'NULL', 'GOLD P95', 'TIMEOUT', 'SUGGESTED', 'WHY']
  return `${formatTable(headings, rows)}\n\n${summaryOf(diagnoses)}`
}

function rank({ findings: [worst] }: Diagnosis): number {
  return worst ? CONDITIONS.indexOf(worst.condition) : CONDITIONS.length
}

function wordOf({ findings }: Diagnosis): string {
  return findings[0]?.condition ?? 'sound'
}

function share({ trials, passes }: Tally): string {
  return trials === 0 ? '-' : `${passes}/${trials}`
}

function durationText(ms: number | null): string {
  return ms === null ? '-' : formatDuration(ms)
}

function whyOf({ findings }: Diagnosis): string {
  const text = findings.map(({ why }) => why.replaceAll(/\s+/g, ' ').trim()).join('; ')
  return text.length > WHY_SHOWN ? `${text.slice(0, WHY_SHOWN)}…` : text
}

function summaryOf(diagnoses: readonly Diagnosis[]): string {
  const counts = new Map<string, number>()
  for (const each of diagnoses) counts.set(wordOf(each), (counts.get(wordOf(each)) ?? 0) + 1)
  const unfit = diagnoses.filter(isUnfit).length
  const words = [...counts].map(([word, count]) => `${count} ${word}`).join(', ')
  const tasks = diagnoses.length === 1 ? '1 task' : `${diagnoses.length} tasks`
  return unfit === 0
    ? `${tasks}: ${words}`
    : `${tasks}: ${words}; ${unfit} should not be trained on as they are`
}

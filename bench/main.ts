/** `node bench/main.ts [--json] [--samples] [--long] [NAME…]`, behind `sandlot bench`. */
import { parseArgs } from 'node:util'
import { BENCHES } from './benches.ts'
import { formatReport } from './report.ts'
import { runBenches } from './run.ts'

const EXIT_USAGE = 2
const EXIT_INTERRUPTED = 130

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    samples: { type: 'boolean', default: false },
    long: { type: 'boolean', default: false },
  },
})

const unknown = positionals.filter((name) => !BENCHES.some((bench) => bench.name === name))
if (unknown.length > 0) {
  console.error(`error: no bench is called ${unknown.join(', ')}`)
  console.error(`hint:  ${BENCHES.map(({ name, about }) => `${name}: ${about}`).join('\n       ')}`)
  process.exit(EXIT_USAGE)
}

const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    // A second one does not wait for the cleaning up.
    if (interrupted.signal.aborted) process.exit(EXIT_INTERRUPTED)
    interrupted.abort(new Error('interrupted'))
  })
}

const chosen = BENCHES.filter(({ name, long = false }) =>
  positionals.length === 0 ? !long || values.long : positionals.includes(name),
)
const report = await runBenches({
  benches: chosen,
  samples: values.samples,
  long: values.long,
  signal: interrupted.signal,
  note: (line) => console.error(`bench: ${line}`),
})
console.log(values.json ? JSON.stringify(report, null, 2) : formatReport(report))
if (interrupted.signal.aborted) process.exitCode = EXIT_INTERRUPTED
else if (report.failures.length > 0) process.exitCode = 1

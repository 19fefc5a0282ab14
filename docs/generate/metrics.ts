import { type Document, NOTICE } from './document.ts'
import { Metrics, watch } from './inside.ts'
import { code, table } from './markdown.ts'

const INTRODUCTION = `# Metrics

\`GET /metrics\` answers in the text format of Prometheus, without a key. Beside the daemon's own there are those of its process
(\`process_*\`, \`nodejs_*\`: memory, processor time, event-loop lag, garbage collection, open files). Which to look at first when
something hangs is in [guides/operating.md](guides/operating.md#at-two-in-the-morning).`

interface Metric {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly labelNames: readonly string[]
}

export const metrics: Document = {
  path: 'docs/metrics.md',
  text: () => {
    const headings = ['name', 'type', 'labels', 'what it says']
    return [NOTICE, INTRODUCTION, table(headings, ownMetrics().map(rowOf)), ''].join('\n\n')
  },
}

/** Nothing is looked at: the registry is asked for names alone. */
function ownMetrics(): Metric[] {
  const { registry } = new Metrics()
  watch(registry, { sockets: () => 0 } as Parameters<typeof watch>[1])
  const all = registry.getMetricsAsArray() as unknown as Metric[]
  return all
    .filter(({ name }) => name.startsWith('sandlot_'))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function rowOf({ name, help, type, labelNames }: Metric): string[] {
  return [code(name), String(type), labelNames.map(code).join(', '), help]
}

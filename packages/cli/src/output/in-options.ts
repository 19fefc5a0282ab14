/** What has which option, at every verb that sends it. */
const OPTIONS: Readonly<Record<string, string>> = {
  'program.model.url': '--model',
  'model.url': '--model',
  from: '--from',
  command: '--command',
  setup: '--setup',
  files: '--file',
  reward: '--reward',
  'grade.run': '--grade',
  'grade.in': '--grade-in',
  'grade.files': '--grade-file',
  'grade.reward': '--reward',
  'group.size': '--group',
  seed: '--seed',
  'resources.memory': '--memory',
  'resources.cpu': '--cpu',
  'resources.disk': '--disk',
  'resources.pids': '--pids',
  'resources.processesPerUser': '--pids-per-user',
  'resources.openFiles': '--open-files',
  'resources.fileSize': '--file-size',
  'resources.gpu': '--gpu',
  env: '--env',
  cwd: '--cwd',
  user: '--user',
  timeout: '--timeout',
  keepWarm: '--keep-warm',
  lifetime: '--lifetime',
  expires: '--expires',
  project: '--project',
  concurrency: '--concurrency',
  retain: '--retain',
  network: '--allow',
  'network.allow': '--allow',
  'network.setup': '--allow',
  'network.agent': '--allow',
  'network.grade': '--allow',
  'policy.allow': '--allow',
  ...limitOptions('network.limits'),
  ...limitOptions('policy.limits'),
  tags: '--tag',
  name: '--name',
  exclude: '--exclude',
  onRestore: '--on-restore',
  count: '--count',
  keep: '--keep',
  artifacts: '--artifact',
  secrets: '--secret',
  // Of a secret, which is read: no option has it.
  value: 'the value',
}

/**
 * A refusal that names fields of the API, as one that names the options of a verb: `body.resources.memory: …` as `--memory: …`. What
 * is below a field stands behind its option.
 */
export function inOptions(message: string): string {
  return message.replace(
    /(^|; )(?:(?:body|request|query)\.)?([\w.]+(?:\/[^\s:;]+)?): /g,
    (whole, before, path: string) => {
      const option = optionOf(path)
      return option === undefined ? whole : `${before}${option}: `
    },
  )
}

/** What a policy bounds, at each place where one is sent. */
function limitOptions(place: string): Record<string, string> {
  return {
    [`${place}.connections`]: '--connections',
    [`${place}.connectionsPerMinute`]: '--connections-per-minute',
    [`${place}.bytes`]: '--bytes',
    [`${place}.bytesPerSecond`]: '--bytes-per-second',
  }
}

function optionOf(path: string): string | undefined {
  const field = Object.keys(OPTIONS)
    .filter((each) => path === each || path.startsWith(`${each}.`))
    .sort((a, b) => b.length - a.length)[0]
  if (field === undefined) return undefined
  const below = path.slice(field.length + 1)
  // Which of several it is: its name, where it has one.
  return below === '' || /^\d+$/.test(below) ? OPTIONS[field] : `${OPTIONS[field]} ${below}`
}

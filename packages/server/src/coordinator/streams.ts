/** Where a run's records lie in the engine. `run/<project>/<name>` in the key-value store is the one place that says a run exists. */
export interface RunAddress {
  readonly project: string
  readonly id: string
}

export function recordKey(project: string, name: string): string {
  return `${recordPrefix(project)}${name}`
}

export function recordPrefix(project: string): string {
  return `run/${project}/`
}

export const ALL_RECORDS = 'run/'
/** Where records of any sort are set aside that can't be read, each below this with its own key. */
export const DAMAGED_RECORDS = 'damaged/'
export const ALL_STREAMS = 'run/'

export function eventStream(run: RunAddress): string {
  return `${streamPrefix(run)}events`
}

export function resultStream(run: RunAddress): string {
  return `${streamPrefix(run)}results`
}

export function groupStream(run: RunAddress): string {
  return `${streamPrefix(run)}groups`
}

export function taskStream(run: RunAddress): string {
  return `${streamPrefix(run)}tasks`
}

/** What its tasks start from, beside what the run does. */
export function startStream(run: RunAddress): string {
  return `${streamPrefix(run)}starts`
}

export function streamPrefix({ project, id }: RunAddress): string {
  return `run/${project}/${id}/`
}

/** Blobs that a run needs are pinned below this, each under its digest. */
export function pinPrefix({ project, id }: RunAddress): string {
  return `run/${project}/${id}/`
}

/** The run that a stream belongs to. */
export function runOfStream(stream: string): RunAddress | undefined {
  const parts = stream.split('/')
  const [, project, id] = parts
  return parts.length === 4 && project !== undefined && id !== undefined
    ? { project, id }
    : undefined
}

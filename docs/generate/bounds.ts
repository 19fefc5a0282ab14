import { LIMITS } from '@sandlot/protocol'
import { fillBlock } from './blocks.ts'
import type { Document } from './document.ts'
import {
  COORDINATOR_LIMITS,
  CORE_LIMITS,
  engineLimits,
  GUEST_LIMITS,
  imageLimits,
  RUNTIME_LIMITS,
  SERVER_LIMITS,
} from './inside.ts'
import { code, table } from './markdown.ts'
import { quantityText } from './quantity-text.ts'

/** The files that hold every bound, each with those that a user or an operator meets. */
const FILES = [
  {
    path: 'packages/protocol/src/limits.ts',
    limits: LIMITS,
    shown: {
      bodyBytes: 'JSON body of a request',
      payloadBytes: 'one task, or the data of one episode',
      inlineBytes: 'above it a task or data is stored as a blob',
      tasksPerRequest: 'tasks in one request (the SDK sends as many as needed)',
      rowsPerPage: 'results in one answer',
      concurrency: 'episodes in flight of one run',
      argvBytes: 'a command with its arguments',
      envItems: 'environment variables',
      outputHeadBytes: 'kept of the beginning of a buffered command’s output, each channel',
      outputTailBytes: '… and of its end',
      leaseMs: 'a worker that is silent for so long has died',
      reconnectMs: 'a worker whose connection ended has so long to come back',
      artifacts: 'artifacts of one attempt, its log among them',
      artifactBytes: 'one artifact',
      logBytes: 'kept of an attempt’s log',
      waitMs: 'a request that waits for news',
      episodes: 'episodes of one run',
      keyLength: 'characters of a task’s key',
      nameLength: 'characters of a run’s name',
      tags: 'tags of a run or sandbox',
    },
  },
  {
    path: 'packages/server/src/coordinator/limits.ts',
    limits: COORDINATOR_LIMITS,
    shown: {
      runsLive: 'runs that are not finished',
      resultReaders: 'readers that wait for the next result of one run',
    },
  },
  {
    path: 'packages/core/src/limits.ts',
    limits: CORE_LIMITS,
    shown: {
      workersLost: 'workers that die with an episode before it is `episode_error`',
      pauseWindow: 'endings over which `episode_error` is counted …',
      pauseErrors: '… and how many of them pause the run',
      platformStreak: 'platform failures in a row that pause the run',
      retryDelayMs: 'first wait before another attempt, doubled each time …',
      retryDelayMsMax: '… up to this',
      rewardNames: 'named rewards of one result',
    },
  },
  {
    path: 'packages/server/src/limits.ts',
    limits: SERVER_LIMITS,
    shown: {
      connections: 'connections at once',
      streams: 'streams of one WebSocket',
      blobBytes: 'one blob',
      idempotencyMs: 'an idempotency key is known',
      endingMs: 'the ending of a sandbox can be asked for',
      keys: 'keys of the API',
      createMs: 'a start of a sandbox outside of a run',
      diskReserveBytes: 'of the disk, never promised to sandboxes; or 5 %, where that is more',
    },
  },
  {
    path: 'packages/runtime/src/limits.ts',
    limits: RUNTIME_LIMITS,
    shown: {
      startMs: 'a start of gVisor to the agent’s hello',
      checkoutMs: 'from a blank to an open world',
      killMs: 'all processes of an ended sandbox are gone',
      blankDetachedMs: 'a blank without a daemon ends itself',
      layersMax: 'layers of an image',
      checkpointDiskBytesMax: 'files on the disk that are saved with the memory',
    },
  },
  {
    path: 'packages/runtime/src/guest/limits.ts',
    limits: GUEST_LIMITS,
    shown: {
      streams: 'requests under way in one sandbox',
      silentMs: 'a guest that is silent for so long is lost',
      transferMs: 'one transfer of files',
    },
  },
  {
    path: 'packages/runtime/src/image/limits.ts',
    limits: imageLimits,
    shown: {
      layerBytesMax: 'one layer',
      layerEntriesMax: 'files in one layer',
      debianBuildMs: 'a build from Debian packages',
    },
  },
  {
    path: 'packages/engine/src/limits.ts',
    limits: engineLimits,
    shown: {
      BACKLOG_OPERATIONS_MAX: 'writes that wait for the disk before more are refused',
      BACKLOG_BYTES_MAX: '… and their bytes',
    },
  },
] as const

/** The table of bounds in the specification. */
export const bounds: Document = {
  path: 'SPECIFICATION.md',
  text: (current) => fillBlock(current, 'bounds', boundsTable()),
}

function boundsTable(): string {
  const rows = FILES.flatMap(({ path, limits, shown }) =>
    Object.entries(shown as Record<string, string>).map(([name, what], index) => {
      const value = (limits as Record<string, unknown>)[name]
      if (typeof value !== 'number') throw new Error(`${path} has no bound ${name}`)
      const file = index === 0 ? `[${shortened(path)}](${path})` : ''
      return [file, code(name), quantityText(name, value), what]
    }),
  )
  return table(['file', 'bound', 'value', 'of what'], rows)
}

function shortened(path: string): string {
  return path.replace('packages/', '').replace('/src', '').replace('/limits.ts', '')
}

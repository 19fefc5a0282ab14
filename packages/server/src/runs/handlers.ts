import { runName, SandlotError } from '@sandlot/protocol'
import type { CoordinatorPort, TaskRequest } from '../coordinator/port.ts'
import { defined } from '../defined.ts'
import type { Handlers } from '../http/call.ts'
import { startOf } from '../sandboxes/start-of.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { StartPoint, StartPoints } from '../start-points.ts'
import { graderImages } from './grader-images.ts'

type RunRoutes =
  | 'createRun'
  | 'listRuns'
  | 'getRun'
  | 'attachRun'
  | 'putTasks'
  | 'closeRun'
  | 'cancelRun'
  | 'pauseRun'
  | 'resumeRun'
  | 'deleteRun'
  | 'setPolicyVersion'
  | 'getResults'
  | 'getGroups'
  | 'getReport'
  | 'listEpisodes'
  | 'getEpisode'

/** Runs: all of it is the coordinator's. */
export function runHandlers(
  coordinator: CoordinatorPort,
  startPoints: StartPoints,
  secrets: Secrets,
): Pick<Handlers, RunRoutes> {
  return {
    createRun: async ({ caller, body }) => {
      const { network = {}, env } = body
      await secrets.check(caller.project, body.secrets, { network, ...defined({ env }) })
      if (body.function) await secrets.checkFunction(caller.project, body.function)
      using start = await startPoints.resolve(caller.project, body.from)
      const { image: from, checkpoint, coldInstead, onRestore, ...rest } = startOf(start, body)
      const memory = defined({ checkpoint, coldInstead, onRestore })
      const saved = checkpoint === undefined ? {} : { memory }
      const { function: runs } = body
      const functionImage =
        runs?.from === undefined ? null : await startPoints.image(caller.project, runs.from)
      const run = { ...body, ...rest, from, ...saved, functionImage }
      return await coordinator.createRun(caller.project, run)
    },
    listRuns: ({ caller, query, signal }) =>
      coordinator.listRuns(caller.project, defined(query), { signal }),
    getRun: ({ caller, params, signal }) =>
      coordinator.getRun(caller.project, nameOf(params), { signal }),
    attachRun: async ({ caller, params, body }) => {
      const name = nameOf(params)
      if (body.from === undefined) return await coordinator.attachRun(caller.project, name, body)
      using start = await startPoints.resolve(caller.project, body.from)
      const { image: from, checkpoint, coldInstead, onRestore, ...rest } = startOf(start, body)
      const memory = defined({ checkpoint, coldInstead, onRestore })
      const saved = checkpoint === undefined ? {} : { memory }
      // What a start has by itself is named only where the caller did.
      const completed = Object.entries(rest).filter(([option]) => option in body)
      const named = { ...body, ...Object.fromEntries(completed), from, ...saved }
      return await coordinator.attachRun(caller.project, name, named)
    },
    // Once begun, a change is finished, also for a client that is gone.
    putTasks: async ({ caller, params, body }) => {
      using stays = new DisposableStack()
      const starts = new Map<string, StartPoint>()
      const tasks: TaskRequest[] = []
      const images = graderImages((from) => startPoints.image(caller.project, from))
      for (const { from, ...given } of body.tasks) {
        const { network = {}, program } = given
        const env = program?.env
        await secrets.check(caller.project, given.secrets, { network, ...defined({ env }) })
        const task = await images(given)
        if (from === undefined) {
          tasks.push(task)
          continue
        }
        const start = starts.get(from) ?? stays.use(await startPoints.resolve(caller.project, from))
        starts.set(from, start)
        tasks.push({ ...task, start })
      }
      return await coordinator.putTasks(caller.project, nameOf(params), tasks)
    },
    closeRun: ({ caller, params }) => coordinator.closeRun(caller.project, nameOf(params)),
    cancelRun: ({ caller, params }) => coordinator.cancelRun(caller.project, nameOf(params)),
    pauseRun: ({ caller, params }) => coordinator.pauseRun(caller.project, nameOf(params)),
    resumeRun: ({ caller, params }) => coordinator.resumeRun(caller.project, nameOf(params)),
    deleteRun: async ({ caller, params }) => {
      await coordinator.deleteRun(caller.project, nameOf(params))
      return undefined
    },
    setPolicyVersion: ({ caller, params, body }) =>
      coordinator.setPolicyVersion(caller.project, nameOf(params), body.version),
    getResults: ({ caller, params, query, signal }) => {
      const { after, limit, wait: waitMs } = query
      const wanted = defined({ after, limit, waitMs })
      return coordinator.getResults(caller.project, nameOf(params), wanted, { signal })
    },
    getGroups: ({ caller, params, query, signal }) => {
      const { after, limit, wait: waitMs } = query
      const wanted = defined({ after, limit, waitMs })
      return coordinator.getGroups(caller.project, nameOf(params), wanted, { signal })
    },
    listEpisodes: ({ caller, params, query, signal }) =>
      coordinator.listEpisodes(caller.project, nameOf(params), defined(query), { signal }),
    getEpisode: ({ caller, params, signal }) =>
      coordinator.getEpisode(caller.project, nameOf(params), params.key ?? '', { signal }),
    getReport: ({ caller, params, signal }) =>
      coordinator.getReport(caller.project, nameOf(params), { signal }),
  }
}

function nameOf({ name }: Readonly<Record<string, string>>): string {
  const parsed = runName.safeParse(name)
  if (parsed.success) return parsed.data
  const shown = JSON.stringify((name ?? '').slice(0, 64))
  throw new SandlotError('run_unknown', `${shown} is not the name of a run`)
}

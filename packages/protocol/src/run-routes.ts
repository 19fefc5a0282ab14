/** Routes of runs, their tasks and results: part of the table in `routes.ts`. */
import { z } from 'zod'
import { EPISODE_STATES, episodeItem, episodeView } from './episode.ts'
import { groupsPage } from './group.ts'
import { LIMITS } from './limits.ts'
import { OUTCOMES } from './outcomes.ts'
import { waitInQuery as wait } from './quantity.ts'
import { resultsPage } from './result.ts'
import { page, paged, type Route } from './route.ts'
import {
  policyVersionSet,
  RUN_STATES,
  runAttach,
  runAttached,
  runCreate,
  runReport,
  runView,
} from './run.ts'
import { tasksPut } from './task.ts'

const text = z.string()
const count = z.coerce.number().int()

export const RUN_ROUTES = {
  createRun: {
    method: 'POST',
    path: '/v1/runs',
    summary: 'Start a run, or attach to the one of the same name and specification',
    body: runCreate,
    answer: z.object({ run: runView, attached: z.boolean() }),
    status: 200,
  },
  listRuns: {
    method: 'GET',
    path: '/v1/runs',
    summary: 'List runs',
    query: z.object({ ...page, state: z.enum(RUN_STATES).optional() }),
    answer: paged(runView),
    status: 200,
  },
  getRun: {
    method: 'GET',
    path: '/v1/runs/:name',
    summary: 'Look at a run',
    answer: runView,
    status: 200,
  },
  attachRun: {
    method: 'POST',
    path: '/v1/runs/:name/attach',
    summary: 'See that a run is what is named, and what a worker of it has to bring',
    body: runAttach,
    answer: runAttached,
    status: 200,
  },
  putTasks: {
    method: 'POST',
    path: '/v1/runs/:name/tasks',
    summary: 'Add tasks',
    body: tasksPut,
    answer: z.object({ added: z.number(), known: z.number() }),
    status: 200,
  },
  closeRun: {
    method: 'POST',
    path: '/v1/runs/:name/close',
    summary: 'Say that no more tasks come',
    answer: runView,
    status: 200,
  },
  cancelRun: {
    method: 'POST',
    path: '/v1/runs/:name/cancel',
    summary: 'End all episodes that are not over',
    answer: runView,
    status: 200,
  },
  pauseRun: {
    method: 'POST',
    path: '/v1/runs/:name/pause',
    summary: 'Start no more attempts',
    answer: runView,
    status: 200,
  },
  resumeRun: {
    method: 'POST',
    path: '/v1/runs/:name/resume',
    summary: 'Go on',
    answer: runView,
    status: 200,
  },
  setPolicyVersion: {
    method: 'POST',
    path: '/v1/runs/:name/policy-version',
    summary: 'Say with which version of the policy attempts begin from now on',
    body: policyVersionSet,
    answer: runView,
    status: 200,
  },
  deleteRun: {
    method: 'DELETE',
    path: '/v1/runs/:name',
    summary: 'Delete a finished run with its results',
    answer: 'none',
    status: 204,
  },
  getResults: {
    method: 'GET',
    path: '/v1/runs/:name/results',
    summary: 'Results in the order of their completion, from a cursor; waits for news',
    query: z.object({
      after: text.optional(),
      limit: count.min(1).max(LIMITS.rowsPerPage).optional(),
      wait: wait.optional(),
    }),
    answer: resultsPage,
    status: 200,
  },
  getGroups: {
    method: 'GET',
    path: '/v1/runs/:name/groups',
    summary: 'Groups that have ended, with the results that count, from a cursor; waits for news',
    query: z.object({
      after: text.optional(),
      limit: count.min(1).max(LIMITS.groupsPerPage).optional(),
      wait: wait.optional(),
    }),
    answer: groupsPage,
    status: 200,
  },
  listEpisodes: {
    method: 'GET',
    path: '/v1/runs/:name/episodes',
    summary:
      'Episodes of a run: those that are not done in their order, then the others in that of their results',
    query: z.object({
      ...page,
      state: z.enum(EPISODE_STATES).optional(),
      outcome: z.enum(OUTCOMES).optional(),
    }),
    answer: paged(episodeItem),
    status: 200,
  },
  getEpisode: {
    method: 'GET',
    path: '/v1/runs/:name/episodes/:key',
    summary:
      'Look at an episode, by its key or its id: where it stands, what it waits for, how it ended',
    answer: episodeView,
    status: 200,
  },
  getReport: {
    method: 'GET',
    path: '/v1/runs/:name/report',
    summary: 'Throughput, latency per phase, outcomes, what limits it',
    answer: runReport,
    status: 200,
  },
} as const satisfies Record<string, Route>

import { type Survey, surveyMachine } from '@sandlot/runtime'
import { readAnnouncement } from './announcement.ts'
import { type DaemonInput, daemonOptions } from './config.ts'

export type LeakSearch = Pick<DaemonInput, 'runDirectory' | 'dataDirectory'>

/**
 * What is on this machine of sandboxes, and what of it nobody owns. Where a run directory is given, only what daemons of it have; else
 * the whole machine, with the data directories that are known. Changes nothing.
 */
export async function surveyLeaks(search: LeakSearch = {}): Promise<Survey> {
  const { runDirectory, dataDirectory } = daemonOptions(search)
  const announced = await readAnnouncement(runDirectory)
  const known = new Set([dataDirectory, ...(announced ? [announced.dataDirectory] : [])])
  return await surveyMachine({
    ...(search.runDirectory === undefined ? {} : { runDirectory }),
    dataDirectories: [...known],
  })
}

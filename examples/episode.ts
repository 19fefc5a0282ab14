import type { EpisodeContext, EpisodeResult } from 'sandlot'

/** Played as a callback, or by containers of the daemon: `client.fn<typeof import('./episode.ts')>(…)`. */
export async function episode({
  sandbox,
  task,
  model,
}: EpisodeContext<{ id: string; question: string }>): Promise<EpisodeResult> {
  const answer = await model(async () => String(6 * 7)) // your model goes here
  await sandbox.files.write('/answer', answer)
  return { data: { answer, question: task.question } }
}

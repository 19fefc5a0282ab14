/** Files and commands of a run, as they travel. */
import type { BroughtFile, Command, GradeSpec, RewardSource } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { putBytes, putFile } from '../image/blob.ts'
import type { BroughtContent, CommandGrade, RewardOption } from './options.ts'

const FILE_MODE = 0o644

/** Uploads files that are brought into sandboxes. */
export async function broughtFiles(
  context: ClientContext,
  files: Readonly<Record<string, BroughtContent>> | undefined,
  waiting: Waiting,
): Promise<{ files?: BroughtFile[] }> {
  const brought = await Promise.all(
    Object.entries(files ?? {}).map(async ([path, content]) => ({
      path,
      mode: modeOf(content),
      blob: await contentBlob(context, content, waiting),
    })),
  )
  return brought.length > 0 ? { files: brought } : {}
}

export async function commandGrade(
  context: ClientContext,
  { run, files, clear, in: where, reward, ...rest }: CommandGrade,
  waiting: Waiting,
): Promise<Extract<GradeSpec, { kind: 'command' }>> {
  return {
    ...rest,
    kind: 'command',
    command: commandOf(run),
    in: where ?? 'world',
    ...rewardOf(reward),
    ...(clear ? { clear: [...clear] } : {}),
    ...(await broughtFiles(context, files, waiting)),
  }
}

export function commandOf(command: string | readonly string[]): Command {
  return typeof command === 'string' ? command : [...command]
}

export function rewardOf(reward: RewardOption | undefined): { reward?: RewardSource } {
  if (reward === undefined) return {}
  if (typeof reward === 'string') return { reward: { from: reward } }
  const paths = typeof reward.file === 'string' ? [reward.file] : [...reward.file]
  return { reward: { from: 'file', paths } }
}

async function contentBlob(
  context: ClientContext,
  content: BroughtContent,
  waiting: Waiting,
): Promise<string> {
  if (typeof content === 'string')
    return await putBytes(context, new TextEncoder().encode(content), waiting)
  if (content instanceof Uint8Array) return await putBytes(context, content, waiting)
  return await putFile(context, content.path, waiting)
}

function modeOf(content: BroughtContent): number {
  if (typeof content === 'string' || content instanceof Uint8Array) return FILE_MODE
  return content.mode ?? FILE_MODE
}

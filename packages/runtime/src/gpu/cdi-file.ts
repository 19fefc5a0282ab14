import { z } from 'zod'

/**
 * Files of the Container Device Interface, by which vendors say what a container needs for each of their devices. Read here as far as
 * a sandbox has part in it; what is not known of newer versions is refused, never passed over.
 */

const text = z.string().min(1).max(4_096)
const path = text
  .startsWith('/', 'is no absolute path')
  .refine(isPlain, 'has `..` or an empty part')

const deviceNode = z.object({
  path: path.refine((at) => at.startsWith('/dev/'), 'is not below /dev'),
  hostPath: path.exactOptional(),
  type: z.string().exactOptional(),
  major: z.number().exactOptional(),
  minor: z.number().exactOptional(),
  fileMode: z.number().exactOptional(),
  permissions: z.string().exactOptional(),
  uid: z.number().exactOptional(),
  gid: z.number().exactOptional(),
})

const mount = z.object({
  hostPath: path,
  containerPath: path,
  options: z.array(text).default([]),
  type: z.string().exactOptional(),
})

const hook = z.object({
  hookName: text,
  path: text,
  args: z.array(z.string()).default([]),
  env: z.array(z.string()).exactOptional(),
  timeout: z.number().exactOptional(),
})

const variable = text.regex(/^[^=]+=/, 'is no NAME=VALUE')

const edits = z.object({
  env: z.array(variable).default([]),
  deviceNodes: z.array(deviceNode).default([]),
  mounts: z.array(mount).default([]),
  hooks: z.array(hook).default([]),
  additionalGids: z.array(z.number()).default([]),
  intelRdt: z.unknown().optional(),
})
export type CdiEdits = z.output<typeof edits>
export type CdiHook = z.output<typeof hook>

const annotations = z.record(z.string(), z.string()).default({})

export const cdiFile = z.object({
  cdiVersion: z
    .string()
    .regex(/^v?0\.[3-9]\.\d+$|^v?1\.\d+\.\d+$/, 'is no version from 0.3.0 to 1'),
  kind: z.string().regex(/^[a-zA-Z][\w.-]*\/[a-zA-Z][\w.-]*$/, 'is no VENDOR/CLASS'),
  annotations,
  containerEdits: edits.prefault({}),
  devices: z
    .array(
      z.object({
        name: z.string().regex(/^[A-Za-z0-9][\w.:-]*$/, 'is no name of a device'),
        annotations,
        containerEdits: edits,
      }),
    )
    .min(1)
    .max(4_096),
})
export type CdiFile = z.output<typeof cdiFile>

function isPlain(at: string): boolean {
  const parts = at.split('/').slice(1)
  return parts.every((part) => part !== '' && part !== '.' && part !== '..')
}

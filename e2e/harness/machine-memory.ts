import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'

/** Limits the memory of all groups below one of this name, by whichever version the machine has. Undefined: no limit. */
export async function limitGroup(name: string, bytes: number | undefined): Promise<void> {
  const v1 = `/sys/fs/cgroup/memory/${name}/memory.limit_in_bytes`
  if (existsSync(v1)) await writeFile(v1, String(bytes ?? -1))
  else await writeFile(`/sys/fs/cgroup/${name}/memory.max`, String(bytes ?? 'max'))
}

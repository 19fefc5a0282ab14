import { z } from 'zod'
import type { Router } from './router.ts'

const counters = z.object({ bytes: z.number() })
const links = z.array(z.object({ stats64: z.object({ rx: counters, tx: counters }) })).length(1)

/** Bytes that went through a link of the router, by the kernel's counters; 0 where there is none. */
export async function linkBytes(router: Router, link: string): Promise<number> {
  const { stdout, problem } = await router.ip(['-json', '-stats', 'link', 'show', 'dev', link])
  if (problem !== undefined) return 0
  const [found] = links.parse(JSON.parse(stdout))
  return (found?.stats64.rx.bytes ?? 0) + (found?.stats64.tx.bytes ?? 0)
}

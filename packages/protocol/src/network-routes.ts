import { z } from 'zod'
import { networkInForce, networkSet } from './network.ts'
import { networkLogPage } from './network-log.ts'
import { waitInQuery } from './quantity.ts'
import { page, type Route } from './route.ts'

/** The network of a sandbox while it runs. */
export const NETWORK_ROUTES = {
  getNetwork: {
    method: 'GET',
    path: '/v1/sandboxes/:id/network',
    summary: 'What decides at this moment what a sandbox may reach',
    answer: networkInForce,
    status: 200,
  },
  setNetwork: {
    method: 'PUT',
    path: '/v1/sandboxes/:id/network',
    summary: 'Set what a running sandbox may reach; the answer is what is in force then',
    body: networkSet,
    answer: networkInForce,
    status: 200,
  },
  readNetworkLog: {
    method: 'GET',
    path: '/v1/sandboxes/:id/network/log',
    summary: 'What a sandbox asked of its network, oldest first; also after it has ended',
    query: z.object({
      /** Entries of this `seq` and later ones. Default: all that are kept. */
      from: z.coerce.number().int().min(0).optional(),
      limit: page.limit,
      /** Where there is none yet, wait so long for one. */
      wait: waitInQuery.optional(),
    }),
    answer: networkLogPage,
    status: 200,
  },
} as const satisfies Record<string, Route>

import { type Resources, SandlotError } from '@sandlot/protocol'
import type { CoordinatorServices } from './services.ts'

/**
 * What no machine here can ever give is refused when it is submitted, not after an hour in a line.
 * @throws SandlotError `invalid_request` with what there is
 */
export async function refuseNever(
  { node }: Pick<CoordinatorServices, 'node'>,
  resources: Resources,
): Promise<void> {
  const { never } = await node.capacity(resources)
  if (never !== undefined) throw new SandlotError('invalid_request', never)
}

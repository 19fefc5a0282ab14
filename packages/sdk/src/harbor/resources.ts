import { completeResources, type ResourcesInput, resources } from '@sandlot/protocol'

/** Of environments that share a sandbox: of what any of them names the most, where the others have the defaults. */
export function largestResources(all: readonly ResourcesInput[]): ResourcesInput {
  const complete = all.map((each) => completeResources(resources.parse(each)))
  const names = (name: keyof ResourcesInput) => all.some((each) => each[name] !== undefined)
  const most = (name: 'cpu' | 'memory', bound: 'request' | 'limit') =>
    Math.max(...complete.map((each) => each[name][bound]))
  const range = (name: 'cpu' | 'memory') => ({
    request: most(name, 'request'),
    limit: most(name, 'limit'),
  })
  return {
    ...(names('cpu') ? { cpu: range('cpu') } : {}),
    ...(names('memory') ? { memory: range('memory') } : {}),
    ...(names('disk') ? { disk: Math.max(...complete.map(({ disk }) => disk)) } : {}),
  }
}

import type { NamedBench } from './bench.ts'

/** Every bench, in the order in which they run. */
export const BENCHES: readonly NamedBench[] = [
  {
    name: 'create',
    about: 'cold create to the first command’s result, by the driver, against raw runsc',
    load: async () => (await import('./figures/create.ts')).create,
  },
  {
    name: 'create-rate',
    about: 'creates per second at saturation, by the driver, against the raw loop',
    load: async () => (await import('./figures/create-rate.ts')).createRate,
  },
  {
    name: 'pool',
    about: 'create to the first command’s result over HTTP, from the pool of blanks',
    load: async () => (await import('./figures/pool.ts')).pool,
  },
  {
    name: 'burst',
    limitMs: 400_000,
    about: 'a hundred creates at once from a pool of a hundred blanks, against the raw loop',
    load: async () => (await import('./figures/burst.ts')).burst,
  },
  {
    name: 'layers',
    about: 'the pool with an image of ten layers, against one layer',
    load: async () => (await import('./figures/layers.ts')).layers,
  },
  {
    name: 'restore',
    about: 'create from a memory snapshot over HTTP, nothing waiting, against raw runsc restore',
    load: async () => (await import('./figures/restore.ts')).restore,
  },
  {
    name: 'restored',
    about: 'create from a memory snapshot over HTTP, from copies that wait',
    load: async () => (await import('./figures/restored.ts')).restored,
  },
  {
    name: 'snapshot',
    about: 'files of a running sandbox saved as a layer that others start from, over HTTP',
    load: async () => (await import('./figures/snapshot.ts')).snapshot,
  },
  {
    name: 'prepare',
    about: 'an environment that is prepared already, asked for again by the SDK',
    load: async () => (await import('./figures/prepare.ts')).prepare,
  },
  {
    name: 'fork',
    about: 'ten copies of an idle sandbox with its memory, against ten raw restores',
    load: async () => (await import('./figures/fork.ts')).fork,
  },
  {
    name: 'episodes',
    about: 'episodes per second end to end, by SDK and daemon, against the raw loop',
    load: async () => (await import('./figures/episodes.ts')).episodes,
  },
  {
    name: 'functions',
    about:
      'inputs of a function through warm containers, against plain processes; a queue’s containers up and down',
    load: async () => (await import('./figures/functions.ts')).functions,
  },
  {
    name: 'exec',
    about: 'what a buffered command adds to its spawn inside, over HTTP and over the WebSocket',
    load: async () => (await import('./figures/exec.ts')).exec,
  },
  {
    name: 'stream',
    about: 'output, upload and download through SDK and daemon, against the raw path to the agent',
    load: async () => (await import('./figures/stream.ts')).stream,
  },
  {
    name: 'ports',
    about: 'requests and bytes to a server in a sandbox, against one on this machine’s loopback',
    load: async () => (await import('./figures/ports.ts')).ports,
  },
  {
    name: 'egress',
    about:
      'bytes between a sandbox and a host that its policy allows, against a client outside of one',
    load: async () => (await import('./figures/egress.ts')).egress,
  },
  {
    name: 'memory',
    about: 'an idle sandbox with its world prepared, and an idle daemon',
    load: async () => (await import('./figures/memory.ts')).memory,
  },
  {
    name: 'live',
    long: true,
    limitMs: 900_000,
    about: 'a thousand sandboxes of one template at once: what each takes, and that each answers',
    load: async () => (await import('./figures/live.ts')).live,
  },
  {
    name: 'coordinator',
    limitMs: 400_000,
    about: '16,000 episodes in flight on the driver in memory, the journal on disk',
    load: async () => (await import('./figures/coordinator.ts')).coordinator,
  },
  {
    name: 'flat',
    limitMs: 400_000,
    about: 'an episode of a run of 100,000 against one of a run of 1,000, on the driver in memory',
    load: async () => (await import('./figures/flat.ts')).flat,
  },
  {
    name: 'resume',
    about: 'a run of 16,000 episodes read back from its log, and gone on with',
    load: async () => (await import('./figures/resume.ts')).resume,
  },
  {
    name: 'tail',
    about: 'groups of a heavy-tailed batch complete, with cut and extra against without',
    load: async () => (await import('./figures/tail.ts')).tail,
  },
  {
    name: 'engine',
    about: 'records per second of the log, against inserts into bare SQLite',
    load: async () => (await import('./figures/engine.ts')).engine,
  },
  {
    name: 'teardown',
    about: 'processor time of ours for each sandbox that ends, and a clean machine after a batch',
    load: async () => (await import('./figures/teardown.ts')).teardown,
  },
  {
    name: 'recover',
    limitMs: 300_000,
    about: 'a daemon killed with 200 sandboxes alive: until the next one serves, all adopted',
    load: async () => (await import('./figures/recover.ts')).recover,
  },
  {
    name: 'soak',
    limitMs: 900_000,
    about:
      '400 sandboxes one after the other (5,000 with --long): what grows with how many there were',
    load: async () => (await import('./figures/soak.ts')).soak,
  },
  {
    name: 'noisy',
    limitMs: 400_000,
    about:
      'good episodes and round trips beside a bomb, a hog, a filler and a flood, against alone',
    load: async () => (await import('./figures/noisy.ts')).noisy,
  },
  {
    name: 'crash',
    limitMs: 600_000,
    about: '500 episodes with the daemon killed twice: nothing lost, doubled or left',
    load: async () => (await import('./figures/crash.ts')).crash,
  },
  {
    name: 'chaos',
    limitMs: 900_000,
    about: 'good and bad episodes with daemon, clients and sandboxes killed at random instants',
    load: async () => (await import('./figures/chaos.ts')).chaos,
  },
]

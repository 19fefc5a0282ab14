/** Whether a socket listens on a port, by what the kernel tells of its sockets in `/proc/net/tcp` and `tcp6`. */
export function listensOn(table: string, port: number): boolean {
  return table.split('\n').some((line) => {
    const [, local = '', , state] = line.trim().split(/\s+/)
    return state === LISTEN && Number.parseInt(local.split(':').at(-1) ?? '', 16) === port
  })
}

const LISTEN = '0A'

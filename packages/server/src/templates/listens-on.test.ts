import { expect, test } from 'vitest'
import { listensOn } from './listens-on.ts'

const TABLES = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   6: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0        7
   7: 0100007F:1F41 0100007F:1F40 01 00000000:00000000 00:00000000 00000000     0        0        8
  sl  local_address                         remote_address                        st tx_queue rx_queue
   0: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000
`

test('a port is listened on, of either family; a connection is no listener', () => {
  expect([8000, 80, 8001, 0, 443].filter((port) => listensOn(TABLES, port))).toEqual([8000, 80])
  expect(listensOn('', 80)).toBe(false)
})

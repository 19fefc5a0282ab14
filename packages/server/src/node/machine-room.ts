import type { RuntimeDriver } from '@sandlot/runtime'
import { DiskRoom } from './disk-room.ts'
import { GpuRoom } from './gpu-room.ts'
import { MemoryRoom } from './memory-room.ts'
import { Room, type RoomSize } from './room.ts'

/** Room on the machine of this driver. `memoryFreeBytes`: kept free of what is promised; 0: a share of the memory. */
export function machineRoom(driver: RuntimeDriver, size: RoomSize, memoryFreeBytes = 0): Room {
  return new Room(size, {
    disk: new DiskRoom(driver),
    gpus: new GpuRoom(driver),
    memory: new MemoryRoom(driver, memoryFreeBytes),
  })
}

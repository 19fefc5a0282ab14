export { type Announcement, announcement, readAnnouncement } from './announcement.ts'
export { type DaemonInput, type DaemonOptions, DEFAULT_PORT, daemonOptions } from './config.ts'
export { type CloseOptions, type Daemon, startDaemon } from './daemon.ts'
export { probeMachine, type TryMachineOptions, tryMachine } from './probe.ts'

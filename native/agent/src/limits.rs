//! Every bound of the agent. What comes from the daemon is bounded as well as what comes from a world.

use sandlot_frames::{PAYLOAD_BYTES_MAX, WINDOW_BYTES};

pub const STREAMS_MAX: usize = 1024;
pub const WORLDS_MAX: usize = 16;
/// Processes of a world of which nothing else is said.
pub const PIDS_MAX_DEFAULT: u64 = 256;
/// Users of a world whose processes are counted apart.
pub const USERS_COUNTED_MAX: usize = 64;
pub const LAYERS_MAX: usize = 128;
/// Device nodes, and files of the machine, that one world is given.
pub const GIVEN_MAX: usize = 512;

/// Connections from inside to the relay; more wait in the listener's queue. Each may hold a credit window of bytes. The
/// daemon gives 128 of them what they ask for, and tells the others that there is no room.
pub const RELAYED_MAX: usize = 192;
/// Connections that wait to be accepted.
pub const RELAY_BACKLOG: i32 = 128;

/// Connections of the daemon to ports inside, open or being made.
pub const PORT_CONNECTIONS_MAX: usize = 256;
/// Requests that wait for something to listen.
pub const PORT_WAITS_MAX: usize = 64;
/// How often it is looked for, and how much longer than a look the pause is at least.
pub const LISTEN_LOOK_MS: u64 = 25;
pub const LISTEN_LOOK_SHARE: u64 = 20;
/// Of one table of sockets, and listeners that are told of.
pub const SOCKET_TABLE_BYTES_MAX: usize = 4 << 20;
pub const LISTENERS_MAX: usize = 1024;

/// Commands that run at once, and ended ones that are kept for a reader that comes back.
pub const EXECS_RUNNING_MAX: usize = 256;
pub const EXECS_ENDED_MAX: usize = 256;

pub const RINGS_TOTAL_BYTES: usize = 8 << 20;
pub const RING_BYTES_MIN: usize = 16 << 10;
pub const RING_BYTES_DEFAULT: usize = 256 << 10;
pub const HEAD_BYTES_DEFAULT: usize = 512 << 10;
pub const TAIL_BYTES_DEFAULT: usize = 512 << 10;

/// Data frames are added to the output only below this.
pub const OUTPUT_BYTES_BUSY: usize = 256 << 10;
/// Requests are read only while less than this waits to be written, to the daemon or to a keeper.
pub const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// One read of a pipe or file, and so the longest data frame.
pub const CHUNK_BYTES: usize = PAYLOAD_BYTES_MAX;

/// How long a peer may be gone before the next look, at first and at most.
pub const REATTACH_FIRST_MS: u64 = 20;
pub const REATTACH_LAST_MS: u64 = 2000;
/// Before `configure`.
pub const DETACHED_MS_DEFAULT: u64 = 60_000;

/// How often a world that is being ended is looked at without news of it, and how long its keeper
/// has to say that its init is dead.
pub const ENDING_LOOK_MS: u64 = 10;
pub const KEEPER_PATIENCE_MS: u64 = 2000;

/// Columns or rows.
pub const TERMINAL_CELLS_MAX: u64 = 4096;
/// What a terminal may hold that its command has printed: more than the runtime's buffers take.
pub const TERMINAL_HELD_BYTES: usize = 256 << 10;

/// How often a command that is slow to start is looked at.
pub const START_LOOK_MS: u64 = 200;

/// A pipe that outlives its command is emptied this often, one chunk a time.
pub const LEFTOVER_PAUSE_MS: u64 = 50;

/// One message between agent and keeper: a request's payload and what the agent adds.
pub const MESSAGE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + 4096;
pub const MESSAGE_DESCRIPTORS_MAX: usize = 4;

/// Long file operations of one world at once.
pub const JOBS_MAX: usize = 32;

pub const PROCESSES_LISTED_MAX: usize = 512;
pub const EXECS_LISTED_MAX: usize = 256;
pub const COMMAND_SHOWN_BYTES: usize = 64;
/// Of a command line, and of all that are listed at once.
pub const COMMAND_KEPT_BYTES: usize = 512;
pub const COMMANDS_LISTED_BYTES: usize = 16 << 10;
pub const NAME_BYTES_MAX: usize = 64;
/// What may be under way towards an open file.
pub const FILE_WINDOW_BYTES: u32 = 4 * WINDOW_BYTES;

pub const PATH_BYTES_MAX: usize = 4095;
pub const HOSTNAME_BYTES_MAX: usize = 64;
pub const ACCOUNT_FILE_BYTES_MAX: usize = 1 << 20;
pub const GROUPS_MAX: usize = 64;
/// Directories open above one another while a tree is walked.
pub const DEPTH_MAX: usize = 512;
/// A file is read to its end to find what it holds, so a longer one is refused before.
pub const LAYER_FILE_BYTES_MAX: u64 = 64 << 30;
/// Of one archive: files with several names, directories whose times are set last.
pub const ARCHIVE_LINKS_MAX: usize = 65_536;
pub const ARCHIVE_DIRECTORIES_MAX: usize = 65_536;
/// Of one difference: names kept of files with several, and paths that are left out.
pub const LINK_NAMES_BYTES_MAX: usize = 8 << 20;
pub const EXCLUDED_MAX: usize = 64;
/// Between the job that writes a difference and the agent: fewer turns of each.
pub const DIFFERENCE_PIPE_BYTES: i32 = 1 << 20;

const _: () = assert!(OUTPUT_BYTES_BUSY < OUTPUT_BYTES_MAX);
const _: () = assert!(CHUNK_BYTES <= WINDOW_BYTES as usize);
const _: () = assert!((RELAYED_MAX + PORT_CONNECTIONS_MAX + PORT_WAITS_MAX) * 2 <= STREAMS_MAX);
const _: () = assert!(RING_BYTES_MIN < RING_BYTES_DEFAULT);
const _: () = assert!(HEAD_BYTES_DEFAULT + TAIL_BYTES_DEFAULT < RINGS_TOTAL_BYTES);

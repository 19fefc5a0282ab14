/** Shell texts and Python programs of ill will, and some of clumsiness, that more than one story runs. */

/** A command that runs a Python program. */
export function python(program: string): readonly string[] {
  return ['python3', '-c', program]
}

/** Leaves as many sleeping children as it may have. */
export const FORK_BOMB = python(`
import os, sys
for n in range(2000):
    try:
        if os.fork() == 0: os.execvp('sleep', ['sleep', '1000'])
    except OSError:
        print('refused'); sys.exit(0)
print('never refused')
`)

/** Forks at every level and never waits: nobody is left who could be told to stop. */
export const WILD_FORK_BOMB = python(`
import os
while True:
    try: os.fork()
    except OSError: pass
`)

export const THREAD_BOMB = python(`
import threading, time
started = 0
try:
    for n in range(10000):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        started += 1
except RuntimeError:
    print('refused', flush=True)
import os
os._exit(0)
`)

export const EAT_SLOWLY = python(`
import time
blocks = []
while True:
    blocks.append(bytearray(b'x') * (8 << 20))
    time.sleep(0.005)
`)

/** One allocation larger than the sandbox may have, then all of it touched. */
export const EAT_AT_ONCE = python(`
import mmap
size = 8 << 30
block = mmap.mmap(-1, size)
for at in range(0, size, 4096): block[at] = 1
`)

/** Fills a file until it may not any more; prints the error's name. */
export function fill(path: string): readonly string[] {
  return python(`
import errno, os
f = os.open('${path}', os.O_CREAT | os.O_WRONLY)
block = bytes(1 << 20)
try:
    for n in range(1 << 16): os.write(f, block)
except OSError as e: print(errno.errorcode[e.errno])
`)
}

export const TINY_FILES = python(`
import errno, os
os.mkdir('/many')
try:
    for n in range(1000000): os.close(os.open(f'/many/{n}', os.O_CREAT))
except OSError as e: print(errno.errorcode[e.errno])
`)

export const OPEN_FILES = python(`
import errno, os
kept = []
try:
    for n in range(100000): kept.append(os.open('/etc/passwd', os.O_RDONLY))
except OSError as e: print(errno.errorcode[e.errno], len(kept) < 20000)
`)

export const OPEN_SOCKETS = python(`
import errno, socket
kept = []
try:
    for n in range(100000): kept.append(socket.socket())
except OSError as e: print(errno.errorcode[e.errno], len(kept) < 20000)
`)

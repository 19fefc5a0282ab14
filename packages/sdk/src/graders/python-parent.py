"""Grades one Python function: runs the tests here, the candidate in a child.

This process is root, alone knows the tests and alone writes the verdict (one JSON line on stdout). The child is another user, has
its own limits and deadline, and sees neither the tests nor this process. What it answers is decoded as plain values, so nothing that
it defines (an __eq__, a __repr__, an exit) reaches the comparison.

Run as: python3 -I -S python-parent.py SPEC.json, with SPEC { prelude, test, entryPoint, candidate, child, timeoutS, memoryBytes }.
"""

import json
import os
import select
import subprocess
import sys
import time

NOBODY = 65534
ANSWER_BYTES_MAX = 4 * 1024 * 1024


class CandidateFailed(Exception):
    """The candidate raised, died, was too slow, or answered with something that is no plain value."""


class Child:
    def __init__(self, spec):
        self.deadline = time.monotonic() + spec["timeoutS"]
        self.buffer = b""
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", spec["child"], spec["candidate"], str(spec["memoryBytes"]), str(spec["timeoutS"])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            start_new_session=True,
            close_fds=True,
        )
        self.input = self.process.stdin.fileno()
        self.output = self.process.stdout.fileno()
        os.set_blocking(self.input, False)
        os.set_blocking(self.output, False)

    def call(self, name, arguments, named):
        request = json.dumps({"name": name, "args": encode(list(arguments)), "named": encode(named)})
        self.send(request.encode() + b"\n")
        try:
            answer = json.loads(self.receive())
            if "value" in answer:
                return decode(answer["value"])
            error = str(answer["error"])
        except CandidateFailed:
            raise
        except Exception as problem:
            raise CandidateFailed(f"answered nonsense: {type(problem).__name__}")
        raise CandidateFailed(error[:200])

    def send(self, data):
        while data:
            self.wait([], [self.input])
            try:
                data = data[os.write(self.input, data) :]
            except BlockingIOError:
                continue
            except OSError:
                raise CandidateFailed("exited before it was asked")

    def receive(self):
        while b"\n" not in self.buffer:
            self.wait([self.output], [])
            try:
                part = os.read(self.output, 65536)
            except BlockingIOError:
                continue
            if not part:
                raise CandidateFailed("exited without an answer")
            self.buffer += part
            if len(self.buffer) > ANSWER_BYTES_MAX:
                raise CandidateFailed("answered with too much")
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def wait(self, readable, writable):
        left = self.deadline - time.monotonic()
        if left <= 0 or not any(select.select(readable, writable, [], left)):
            raise CandidateFailed("was too slow")

    def stop(self):
        self.process.kill()


def encode(value):
    """A plain value as tagged JSON: the tags keep tuples, sets, bytes and keys that are not text apart."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return {"f": repr(value)}
    if kind is complex:
        return {"c": [repr(value.real), repr(value.imag)]}
    if kind is bytes:
        return {"b": value.hex()}
    if kind is list:
        return [encode(item) for item in value]
    if kind in (tuple, set, frozenset):
        return {kind.__name__: [encode(item) for item in value]}
    if kind is dict:
        return {"d": [[encode(key), encode(item)] for key, item in value.items()]}
    raise TypeError(f"a value of type {kind.__name__} can't be handed over")


def decode(value):
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    if tag == "f":
        return float(content)
    if tag == "c":
        return complex(float(content[0]), float(content[1]))
    if tag == "b":
        return bytes.fromhex(content)
    if tag == "d":
        return {decode(key): decode(item) for key, item in content}
    kinds = {"tuple": tuple, "set": set, "frozenset": frozenset}
    return kinds[tag](decode(item) for item in content)


def verdict(spec):
    tests = {"__name__": "tests"}
    exec(compile(spec["prelude"] + "\n\n" + spec["test"], "tests", "exec"), tests)
    child = Child(spec)

    def candidate(*arguments, **named):
        return child.call(spec["entryPoint"], arguments, named)

    # Some tests call the function by its name; the prelude may hold a stub of it.
    tests[spec["entryPoint"]] = candidate
    try:
        tests["check"](candidate)
    except CandidateFailed as failure:
        return {"reward": 0, "why": str(failure)}
    except Exception as wrong:
        return {"reward": 0, "why": f"{type(wrong).__name__}: {wrong}"[:200]}
    finally:
        child.stop()
    return {"reward": 1}


def main():
    with open(sys.argv[1]) as file:
        spec = json.load(file)
    print(json.dumps(verdict(spec)), flush=True)
    # Not by way of the interpreter's end, which would wait for whatever the tests left.
    os._exit(0)


main()

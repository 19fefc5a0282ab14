"""Grades one Python function: runs the tests here, the candidate in a child.

This process is root and alone writes the verdict (one JSON line on stdout). It forks a judge, which alone knows the tests and whose
time is bounded, because a candidate can answer with values that are endless to compare. The judge's child is another user, has
its own limits and deadline, and sees neither the tests nor the judge. What it answers is decoded as plain values, so nothing that
it defines (an __eq__, a __repr__, an exit) reaches the comparison.

Run as: python3 -I -S python-parent.py SPEC.json, with SPEC { prelude, test, entryPoint, candidate, child, timeoutS, memoryBytes }.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback

NOBODY = 65534
ANSWER_BYTES_MAX = 4 * 1024 * 1024
# Beyond the candidate's own time: for the interpreters' start and for the tests.
JUDGE_S = 20
SLICE_S = 0.25
# What the judge tells, before the verdict itself, when it got the first answer.
ANSWERED = b"."


class CandidateFailed(Exception):
    """The candidate raised, died, was too slow, or answered with something that is no plain value."""


class Patience:
    """Time to wait, counted in slices: a machine that stands still for a while takes one slice of it, and is nobody's slowness."""

    def __init__(self, seconds):
        self.left = seconds

    def wait(self, readable, writable):
        """Whether one of them got ready in time."""
        while self.left > 0:
            started = time.monotonic()
            ready = select.select(readable, writable, [], min(SLICE_S, self.left))
            self.left -= min(time.monotonic() - started, 2 * SLICE_S)
            if any(ready):
                return True
        return False


class Child:
    def __init__(self, spec, answered):
        self.patience = Patience(spec["timeoutS"])
        self.on_answer = answered
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
            line = self.receive()
            self.on_answer()
            answer = json.loads(line)
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
        if not self.patience.wait(readable, writable):
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


def verdict(spec, answered):
    tests = {"__name__": "tests"}
    exec(compile(spec["prelude"] + "\n\n" + spec["test"], "tests", "exec"), tests)
    child = Child(spec, answered)

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


def judge(spec, news):
    """The verdict as a line on `news`. Never returns."""
    code, told = 1, []

    def answered():
        if not told:
            told.append(os.write(news, ANSWERED))

    try:
        # What the tests print is no verdict.
        os.dup2(2, 1)
        line = json.dumps(verdict(spec, answered))
        os.write(news, line.encode() + b"\n")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        # Not by way of the interpreter's end, which would wait for whatever the tests left.
        os._exit(code)


def hear(news, seconds):
    """All that the judge had to say, and whether it came to its end in time."""
    patience, told = Patience(seconds), b""
    while patience.wait([news], []):
        part = os.read(news, 65536)
        if not part:
            return told, True
        told += part
    return told, False


def main():
    with open(sys.argv[1]) as file:
        spec = json.load(file)
    news, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(news)
        judge(spec, into)
    os.close(into)
    told, ended = hear(news, spec["timeoutS"] + JUDGE_S)
    os.kill(pid, signal.SIGKILL)
    if ended:
        line = told[len(ANSWERED) :] if told.startswith(ANSWERED) else told
    elif told.startswith(ANSWERED):
        # The tests are trusted to end, but not with whatever the candidate hands them.
        line = json.dumps({"reward": 0, "why": "the tests did not end with its answers"}).encode()
    else:
        sys.exit("the tests did not end, and had no answer of the candidate yet")
    print(line.decode().strip(), flush=True)
    sys.exit(0 if line else 1)


main()

"""Runs a candidate for python-parent.py: reads calls as lines of JSON, answers with plain values.

Run as: python3 -I -S python-child.py CANDIDATE.py MEMORY_BYTES TIMEOUT_S. Everything here can be spoilt by the candidate:
the parent trusts none of it.
"""

import json
import os
import resource
import sys


def encode(value):
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if isinstance(value, float):
        return {"f": repr(float(value))}
    if kind is complex:
        return {"c": [repr(value.real), repr(value.imag)]}
    if kind is bytes:
        return {"b": value.hex()}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if kind in (set, frozenset):
        return {kind.__name__: [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"d": [[encode(key), encode(item)] for key, item in value.items()]}
    raise TypeError(f"returned a {kind.__name__}, which is no plain value")


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
    return {"tuple": tuple, "set": set, "frozenset": frozenset}[tag](decode(item) for item in content)


def limit(memory_bytes, timeout_s):
    # One process, few and small files: all of them together must not take the sandbox's memory, or a candidate
    # that is wrong could end its own grade without a verdict.
    most = min(memory_bytes, memory_of_sandbox() // 2)
    for which, value in (
        (resource.RLIMIT_AS, most),
        (resource.RLIMIT_CPU, timeout_s + 1),
        (resource.RLIMIT_FSIZE, 1024 * 1024),
        (resource.RLIMIT_NOFILE, 32),
        (resource.RLIMIT_NPROC, 1),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(which, (value, value))


def memory_of_sandbox():
    with open("/proc/meminfo") as file:
        return int(file.readline().split()[1]) * 1024


def main():
    limit(int(sys.argv[2]), int(sys.argv[3]))
    calls, answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    namespace = {"__name__": "candidate"}
    broken = None
    try:
        with open(sys.argv[1]) as file:
            exec(compile(file.read(), "candidate", "exec"), namespace)
    except BaseException as error:
        broken = f"could not be loaded: {type(error).__name__}: {error}"
    for line in calls:
        request = json.loads(line)
        try:
            if broken:
                raise RuntimeError(broken)
            value = namespace[request["name"]](*decode(request["args"]), **decode(request["named"]))
            answer = {"value": encode(value)}
        except BaseException as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


main()

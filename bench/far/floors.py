"""Floors: what network, server and usual clients give without Outcore, in the same run."""

import csv
import io
import json

ROW = "floor"
LARGE_BYTES = 65536
DEPTH = 8


def echo(context):
    """TCP to a server of ours that only answers: p50_us of 4 KiB, mib_s of 64 KiB replies."""
    return _measure(context, "echo", ["echo", context.scale(30000, 4000)])


def redis(context):
    """Redis: 4 KiB by a plain socket, 64 KiB by hiredis, 8 on their way."""
    server = context.engines.redis()
    words = ["redis", server.port, keys_of(context), context.scale(30000, 4000)]
    return _measure(context, "redis", words)


def keys_of(context):
    """Values of 64 KiB: 256 MiB, as much as the rows of faults have."""
    return context.scale(4096, 512)


def _measure(context, name, words):
    if name not in context.floors:
        said = json.loads(context.run([f"{context.programs}/far_floor", *words]))
        context.floors[name] = said
        context.tell(ROW, f"64 KiB replies, {DEPTH} deep", name, said["seconds"], said["mib_s"],
                     "MiB/s", p50_us=said["p50_us"])
    return context.floors[name]


def benchmark(context, clients):
    """Replies a second of redis-benchmark: GETRANGE of 4 KiB, pipelining 8, so many clients."""
    redis(context)  # the keys
    name = f"redis-benchmark -P {DEPTH} -c {clients}"
    if name not in context.floors:
        server = context.engines.redis()
        # The password is seen by others of this machine (ps); it is of this run only.
        said = context.run(["redis-benchmark", "-p", server.port, "-a", server.password, "--csv",
                            "-P", DEPTH, "-c", clients, "-n", context.scale(400000, 40000),
                            "-r", keys_of(context), "GETRANGE", "floor:__rand_int__", 0, 4095])
        rows = [row for row in csv.reader(io.StringIO(said)) if row]
        rate = float(rows[-1][rows[-2].index("rps")])
        context.floors[name] = rate
        context.tell(ROW, "GETRANGE of 4 KiB", name, 1, rate, "replies/s")
    return context.floors[name]

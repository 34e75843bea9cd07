#!/usr/bin/env python3
"""packing.py [--rate 1gbit] [--mib 64] [--page 16k] FILE: what compress= does to data.

The data: a file, doubles, and noise. A Redis server of its own, behind a network of its own (a
namespace; needs root) that is as fast as this machine or limited to a rate. Prints a row for each
kind of data and way of storing it: bytes on the server and on the way to it, MiB/s of a put and of
a scan, the median and the 99th percentile of faults at random, pages changed at random a second.
Build outcore_cli and far_touches first.
"""

import argparse
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from array import array

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "bin"
MIB = 1 << 20
WAYS = ("", "compress=lz4&chunk=4k", "compress=lz4", "compress=lz4&chunk=64k",
        "compress=zstd&chunk=4k", "compress=zstd", "compress=zstd&chunk=64k", "compress=zstd:1")
HOST, NEAR = "198.19.7.2", "198.19.7.1"  # for benchmarks (RFC 2544)
PORT = "7379"


def run(*words, check=True):
    return subprocess.run([str(w) for w in words], check=check, capture_output=True, text=True)


class Network:
    """A server's namespace, with one cable to this one."""

    def __init__(self, rate):
        self.name = f"outcore-bench-{os.getpid()}"
        self._cable, far = f"ocb{os.getpid() % 100000}", f"ocb{os.getpid() % 100000}f"
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self._cable, "type", "veth", "peer", "name", far)
        run("ip", "link", "set", far, "netns", self.name)
        run("ip", "addr", "add", NEAR + "/30", "dev", self._cable)
        run("ip", "link", "set", self._cable, "up")
        self.inside("ip", "addr", "add", HOST + "/30", "dev", far)
        self.inside("ip", "link", "set", far, "up")
        limit = ["root", "tbf", "rate", rate, "burst", "256kbit", "latency", "400ms"]
        if rate != "none":
            run("tc", "qdisc", "replace", "dev", self._cable, *limit)
            self.inside("tc", "qdisc", "replace", "dev", far, *limit)

    def inside(self, *words):
        return run("ip", "netns", "exec", self.name, *words)

    def remove(self):
        run("ip", "link", "del", self._cable, check=False)
        run("ip", "netns", "del", self.name, check=False)


class Server:
    def __init__(self, network):
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", network.name, "redis-server", "--port", PORT, "--bind", HOST,
             "--save", "", "--protected-mode", "no"], stdout=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while "PONG" not in self.ask("PING"):
            if time.monotonic() > until:
                sys.exit("packing: the server does not start")
            time.sleep(0.05)

    def ask(self, *words):
        return run("redis-cli", "-h", HOST, "-p", PORT, *words, check=False).stdout

    def traffic(self):
        stats = dict(line.split(":") for line in self.ask("INFO", "stats").split() if ":" in line)
        return int(stats["total_net_input_bytes"]), int(stats["total_net_output_bytes"])

    def end(self):
        self._process.terminate()
        self._process.wait()


def data_of(kind, path, size_bytes):
    if kind == "file":
        return path.read_bytes()[:size_bytes]
    if kind == "noise":
        return random.Random(1).randbytes(size_bytes)
    # A field on a grid: smooth, with all its digits.
    count = size_bytes // 8
    return array("d", (math.sin(i * 1e-3) * 100 + i * 1e-6 for i in range(count))).tobytes()


def measure(server, source, way, size_bytes, page):
    uri = f"redis://{HOST}:{PORT}/a?replicas=0" + ("&" + way if way else "")
    before = server.traffic()
    start = time.monotonic()
    run(BIN / "outcore", "store", "put", source, uri)
    seconds = time.monotonic() - start
    sent = server.traffic()[0] - before[0]
    stored = json.loads(run(BIN / "outcore", "store", "du", "--json", uri).stdout)["stored_bytes"]
    run(BIN / "outcore", "store", "verify", uri, source)
    environment = dict(os.environ, OUTCORE_BUDGET=str(size_bytes // 10), OUTCORE_PAGE=page)
    touched = subprocess.run([str(BIN / "far_touches"), uri, "10000", "5000"], check=True,
                             capture_output=True, text=True, env=environment).stdout
    run(BIN / "outcore", "store", "rm", uri)
    return {"stored": stored / size_bytes, "sent": sent / size_bytes,
            "put_mib_s": size_bytes / MIB / seconds, **json.loads(touched)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", default="none", help="as tc has it: 1gbit; none: no limit")
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--page", default="4k", help="of the region that is touched")
    parser.add_argument("--ways", nargs="*", default=WAYS, help="URI parameters; '' is plain")
    parser.add_argument("file", type=pathlib.Path)
    options = parser.parse_args()
    network = Network(options.rate)
    server = None
    try:
        server = Server(network)
        print("| data | stored | bytes stored, sent | put MiB/s | scan MiB/s | fault p50, p99 µs "
              "| page writes/s |\n| --- | --- | --- | --- | --- | --- | --- |")
        for kind in ("file", "doubles", "noise"):
            content = data_of(kind, options.file, options.mib * MIB)
            with tempfile.NamedTemporaryFile() as source:
                source.write(content)
                source.flush()
                for way in options.ways:
                    found = measure(server, source.name, way, len(content), options.page)
                    print("| {} | `{}` | {stored:.2f}, {sent:.2f} | {put_mib_s:.0f} "
                          "| {scan_mib_s:.0f} | {p50_us:.0f}, {p99_us:.0f} | {writes_s:.0f} |"
                          .format(kind, way or "plain", **found), flush=True)
    finally:
        if server is not None:
            server.end()
        network.remove()


if __name__ == "__main__":
    main()

"""Engines: Redis servers and a small Ceph on this machine, for as long as a table needs them.

They die with this process, however it ends.
"""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from bench_command import Failed

ROOT = pathlib.Path(__file__).resolve().parents[1]
SECONDS_MAX = 60  # until an engine has started
NODE_TIMEOUT_MS = 2000  # of a cluster: after so long a master is taken for dead
SLOTS = 16384


def becomes(is_true, what, seconds_max=SECONDS_MAX):
    """Waits until it is true; Failed, with its name, if that takes too long."""
    until = time.monotonic() + seconds_max
    while not is_true():
        if time.monotonic() > until:
            raise Failed(f"{what}: not within {seconds_max} s")
        time.sleep(0.02)


class RedisServer:
    """One server, on 127.0.0.1."""

    _next_port = 12000 + os.getpid() % 800 * 10

    def __init__(self, folder, password, more=()):
        self.port, self.password, self._process = self._free_port(), password, None
        self._folder, self._more = folder / str(self.port), list(more)
        self._folder.mkdir()
        self.start()

    @classmethod
    def _free_port(cls):
        """One that is free, as that of the cluster's own talk, 10000 above."""
        while True:
            port = cls._next_port
            cls._next_port += 1
            with contextlib.suppress(OSError), socket.socket() as one, socket.socket() as other:
                one.bind(("127.0.0.1", port))
                other.bind(("127.0.0.1", port + 10000))
                return port

    def start(self):
        words = ["redis-server", "--port", self.port, "--dir", self._folder, "--bind", "127.0.0.1",
                 "--save", "", "--appendonly", "no", "--maxmemory", "4gb",
                 "--maxmemory-policy", "noeviction", "--repl-diskless-sync-delay", "0",
                 "--repl-ping-replica-period", "1", "--requirepass", self.password,
                 "--masterauth", self.password, *self._more]
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *map(str, words)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log)
        becomes(lambda: self.ask("PING") == "PONG" or self._process.poll() is not None,
                f"a redis-server on port {self.port} starts")
        if self._process.poll() is not None:
            said = (self._folder / "log").read_text(errors="replace").strip().splitlines()
            raise Failed(f"a redis-server does not start: {said[-1] if said else 'no word'}")

    def kill(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def ask(self, *words):
        """The answer: text, a number, a list; None where there is none."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as server:
                with server.makefile("rb") as answers:
                    for command in (("AUTH", self.password), words):
                        server.sendall(_request(command))
                        answer = _answer(answers)
            return answer
        except (OSError, ValueError):
            return None

    def info(self, key):
        for line in str(self.ask("INFO", "everything")).splitlines():
            if line.startswith(key + ":"):
                return line.partition(":")[2]
        return ""


def _request(words):
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


def _answer(file):
    line = file.readline()
    kind, rest = line[:1], line[1:].strip().decode()
    if kind == b"$":
        return file.read(int(rest) + 2)[:-2].decode(errors="replace") if int(rest) >= 0 else ""
    if kind == b"*":
        return [_answer(file) for _ in range(int(rest))]
    if kind == b":":
        return int(rest)
    if kind in (b"+", b"-"):
        return rest
    raise ValueError("the server said nothing")


class RedisCluster:
    """Three masters and a replica of each: server 3 is that of server 0."""

    masters = 3

    def __init__(self, folder, password):
        more = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT_MS)]
        self.servers = []
        try:
            for _ in range(2 * self.masters):
                self.servers.append(RedisServer(folder, password, more))
            self._join()
        except BaseException:
            self.close()
            raise

    def _join(self):
        for i, server in enumerate(self.servers[:self.masters]):
            server.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            server.ask("CLUSTER", "ADDSLOTSRANGE", SLOTS * i // self.masters,
                       SLOTS * (i + 1) // self.masters - 1)
        for i, server in enumerate(self.servers):
            for other in self.servers[:i]:
                server.ask("CLUSTER", "MEET", "127.0.0.1", other.port)
        for i, server in enumerate(self.servers[self.masters:]):
            master = self.servers[i].ask("CLUSTER", "MYID")
            becomes(lambda s=server, m=master: s.ask("CLUSTER", "REPLICATE", m) == "OK",
                    "a replica joins")
        becomes(lambda: all(self._is_ready(s) for s in self.servers), "the cluster is ready")

    def _is_ready(self, server):
        slots = server.ask("CLUSTER", "SLOTS") or []
        is_whole = "cluster_state:ok" in str(server.ask("CLUSTER", "INFO"))
        has_all = len(slots) == self.masters and all(len(s) == 4 for s in slots)
        is_fed = server in self.servers[:self.masters] or server.info("master_link_status") == "up"
        return is_whole and has_all and is_fed

    def hosts(self):
        return ",".join(f"127.0.0.1:{s.port}" for s in self.servers)

    def close(self):
        for server in self.servers:
            server.kill()


class Ceph:
    """The cluster of far/tests/rbd: a monitor, three OSDs, a pool `data`."""

    def __init__(self):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="outcore-far-ceph-", dir="/var/tmp"))
        self._script = subprocess.Popen(
            [ROOT / "far/tests/rbd/ceph_cluster.sh", self._folder], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        said = self._script.stdout.readline().strip()
        if said != "ready":
            self.close()
            raise Failed(f"the Ceph cluster: {said or 'it said nothing'}")

    def uri(self, image):
        return f"rbd://data/{image}?conf={self._folder}/ceph.conf"

    def client_bytes(self):
        """What clients have sent to the OSDs in writes, replicas not counted."""
        total = 0
        for path in sorted(self._folder.glob("osd.*.asok")):
            said = subprocess.run(["ceph", "--admin-daemon", path, "perf", "dump", "osd"],
                                  capture_output=True, text=True, check=True, timeout=60)
            total += json.loads(said.stdout)["osd"]["op_w_in_bytes"]
        return total

    def close(self):
        """It tidies up at the end of its input."""
        self._script.stdin.close()
        try:
            self._script.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(self._script.pid, signal.SIGKILL)
            self._script.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class Engines:
    """Each starts when it is first asked for. A context."""

    def __init__(self):
        self.password = secrets.token_hex(16)
        self._open, self._made = contextlib.ExitStack(), {}

    def __enter__(self):
        name = self._open.enter_context(
            tempfile.TemporaryDirectory(prefix="outcore-far-", ignore_cleanup_errors=True))
        self._folder = pathlib.Path(name)
        return self

    def __exit__(self, *failure):
        return self._open.__exit__(*failure)

    def _once(self, name, make, close):
        if name not in self._made:
            self._made[name] = make()
            self._open.callback(close, self._made[name])
        return self._made[name]

    def redis(self):
        return self._once("redis", lambda: RedisServer(self._folder, self.password),
                          RedisServer.kill)

    def far_uri(self, count, size_bytes):
        """Single servers that are filled one after the other; together they have room for that
        much. The password is in the environment."""
        each = int(size_bytes / count * 1.5) + (24 << 20)  # with what a server keeps beside it
        servers = self._once(
            f"far-{count}",
            lambda: [RedisServer(self._folder, self.password, ["--maxmemory", str(each)])
                     for _ in range(count)],
            lambda made: [server.kill() for server in made])
        return "far://" + ",".join(f"127.0.0.1:{server.port}" for server in servers)

    def cluster(self):
        return self._once("cluster", lambda: RedisCluster(self._folder, self.password),
                          RedisCluster.close)

    def ceph(self):
        if "ceph" not in self._made:
            self._made["ceph"] = Ceph()
            self._open.callback(self.end_ceph)
        return self._made["ceph"]

    def end_ceph(self):
        """Its daemons, if there are any: idle ones take time of the processors, too."""
        ceph = self._made.pop("ceph", None)
        if ceph is not None:
            ceph.close()

    def redis_uri(self, name, port=None):
        """On the single server, which has no replica. The password is in the environment."""
        return f"redis://127.0.0.1:{port or self.redis().port}/{name}?replicas=0"

    def cluster_uri(self, name):
        return f"redis://{self.cluster().hosts()}/{name}?replicas=1"

"""Rows: the lines of the table: what each runs, and who judges it.

All with Outcore's default settings but for the budget and the store, and pages where a row says so.
Stores on the single server are of replicas=0, as it has none; the sort is on the cluster.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

import delay
import engines
import floors
import judge
import local_memory
from bench_command import Failed
from judge import MIB, Verdict

READERS, FAR_SECONDS = 4, 0.005


@dataclass
class Row:
    name: str
    title: str
    measure: Callable  # of a Context and the folder of figures; the verdicts


def touches(context, row, threads, count, *more, store=None):
    """Random touches of 4 KiB pages, ten times as many as are local."""
    return context.bench(row, "random-io", "--size", context.scale("256M", "32M"),
                         "--budget", "10%", "--threads", threads, "--touches", count, *more,
                         store=store or context.engines.redis_uri(row))


def fault_1(context, _figures):
    echo, redis = floors.echo(context), floors.redis(context)
    lines = touches(context, "fault-1", 1, context.scale(40000, 6000))
    return [judge.fault_latency(lines, echo, redis)]


def fault_8(context, _figures):
    one, many = floors.benchmark(context, 1), floors.benchmark(context, 50)
    lines = touches(context, "fault-8", 8, context.scale(200000, 20000))
    return [judge.fault_rate(lines, one, many)]


def readers(context, _figures):
    """Random touches of one data set by one and by four processes that only read, far away."""
    count = context.scale(2000, 300)
    server = context.engines.redis()
    far = delay.Delay(server.port, FAR_SECONDS)
    try:
        store = context.engines.redis_uri("readers", port=far.port)
        rates = [judge.median(touches(context, "readers", 1, count * processes, "--processes",
                                      processes, store=store), "rate")
                 for processes in (1, READERS)]
    finally:
        far.close()
    return [judge.readers(READERS, *rates)]


def scan(context, _figures):
    redis = floors.redis(context)
    lines = context.bench("scan", "scan", "--size", context.scale("512M", "64M"),
                          "--budget", "10%", "--threads", 1,
                          store=context.engines.redis_uri("scan"))
    return [judge.scan(lines, redis)]


def stream(context, _figures):
    echo = floors.echo(context)
    lines = context.bench("stream", "stream", "--size", context.scale("256M", "48M"),
                          "--budget", "8%", "--passes", context.scale(3, 2),
                          store=context.engines.redis_uri("stream"))
    return [judge.stream(lines, echo, 0.08)]


def jacobi(context, _figures):
    size = ["--size", context.scale("256M", "48M")]
    dram = context.bench("jacobi", "jacobi", *size, memory="dram")
    far = context.bench("jacobi", "jacobi", *size, "--budget", "10%",
                        store=context.engines.redis_uri("jacobi"))
    return [judge.jacobi(far, dram)]


def swap(context, _figures):
    verdicts = []
    for name, passes in (("stream", 2), ("jacobi", 2)):
        words = [name, "--size", context.scale("192M", "64M"), "--budget", "15%",
                 "--passes", passes]
        far = context.bench("swap", *words, store=context.engines.redis_uri("swap"))
        try:
            swapped = context.bench("swap", *words, "--limit", context.scale(120, 20),
                                    memory="swap", repeats=1)
        except Failed as why:
            verdicts.append(Verdict(f"{name}, 15% local, against swap",
                                    f"{judge.median(far, 'seconds'):.1f} s",
                                    f">= {judge.SWAP_MIN} x as fast", f"skipped: {why}"))
            continue
        verdicts.append(judge.swap(name, far, swapped))
    return verdicts


def spread(context, _figures):
    lines = context.bench("spread", "jacobi", "--size", context.scale("128M", "24M"),
                          "--budget", "10%", store=context.engines.redis_uri("spread"), repeats=5)
    return [judge.spread(lines)]


def rbd_bytes(context, _figures):
    """As the OSDs count what clients write to them, not as Outcore does."""
    size, writes = context.scale(2048 * MIB, 128 * MIB), context.scale(131072, 8192)
    ceph = context.engines.ceph()
    uri, before = ceph.uri("far-bytes"), ceph.client_bytes()
    said = json.loads(context.run([f"{context.programs}/far_byte_writes", uri, size, writes],
                                  OUTCORE_BUDGET=str(size // 8)))
    sent = ceph.client_bytes() - before
    context.tell("rbd-bytes", "random byte writes", "outcore", said["seconds"],
                 writes / said["seconds"], "writes/s", data_bytes=size, budget_bytes=size // 8,
                 written_bytes=said["written_bytes"], sent_bytes=sent,
                 dirty_pages=said["dirty_pages"], checked=said["wrong"] == 0)
    context.run([f"{context.programs}/outcore", "store", "rm", uri])
    return [judge.sent(said, sent, writes)]


def failover(context, _figures):
    """Kills the first master when the run has read from it for a while, and starts it again, as a
    replica, when its own has taken over: without a second copy no write would be acknowledged."""
    cluster = context.engines.cluster()
    victim, heir = cluster.servers[0], cluster.servers[cluster.masters]

    def reads():
        said = victim.info("cmdstat_getrange")
        return int(said.partition("calls=")[2].partition(",")[0] or 0)

    def kill_a_master(process):
        before = reads()
        engines.becomes(lambda: reads() > before + context.scale(4000, 500)
                        or process.poll() is not None, "the sort reads from the first master", 300)
        if process.poll() is not None:
            return
        victim.kill()
        engines.becomes(lambda: heir.info("role") == "master", "its replica takes over")
        victim.start()

    lines = context.bench("failover", "sort", "--size", context.scale("64M", "16M"),
                          "--budget", "25%", store=context.engines.cluster_uri("sort"), repeats=1,
                          while_it_runs=kill_a_master)
    if heir.info("role") != "master":
        raise Failed("the sort was over before a master was killed: use a slower machine")
    return [judge.failover(lines[0], engines.NODE_TIMEOUT_MS)]


ROWS = [
    Row("fault-1", "4 KiB random faults, 1 thread, beside TCP's and Redis' round trip", fault_1),
    Row("fault-8", "4 KiB random faults, 8 threads, beside redis-benchmark", fault_8),
    Row("readers", "four processes that read one data set, beside one", readers),
    Row("scan", "a sequential scan beside pipelined reads by hiredis", scan),
    Row("stream", "STREAM with 8 % local, beside the network's bandwidth", stream),
    Row("jacobi", "Jacobi with 10 % local, beside plain memory", jacobi),
    Row("spread", "five runs of Jacobi with 10 % local", spread),
    Row("failover", "a sort on a cluster whose first master is killed", failover),
    Row("rbd-bytes", "random byte writes on Ceph: what is sent", rbd_bytes),
    Row("swap", "STREAM and Jacobi with 15 % local, beside swap on the disk", swap),
    # One thread: DLM's programs are sequential.
    *(Row(name, f"{title} by local share and page size, as DLM's {place}",
          local_memory.table(name, title, workload, options, keys))
      for name, title, place, workload, options, keys in (
          ("stream-table", "STREAM", "figures 6 and 7", "stream",
           ("--size 144M --passes 2", "--size 24M --passes 2"), local_memory.STREAM_KEYS),
          ("jacobi-table", "Himeno", "figure 11", "jacobi",
           ("--size 96M --passes 2 --threads 1", "--size 24M --passes 2 --threads 1"), None),
          ("is-table", "NPB IS", "figure 9", "is",
           ("--class A --passes 2 --threads 1", "--class A --passes 1 --threads 1"), None),
          ("cg-table", "NPB CG", "figure 10", "cg",
           ("--class A --passes 2 --threads 1", "--class A --passes 1 --threads 1"), None),
          ("ft-table", "NPB FT", "figure 8", "ft",
           ("--size 80M --passes 1 --threads 1", "--class W --passes 1 --threads 1"), None))),
]

"""Judge: what the rows ask, as arithmetic on what was measured."""

import statistics
from dataclasses import dataclass

KERNELS = ("copy", "scale", "add", "triad")
FAULT_US_MORE = 20
FAULT_RATE_MIN = 0.7
SCAN_MIN = 0.7
READERS_SHARE_MIN = 0.85  # of as many times one reader's rate
STREAM_SLOWER_MAX = 5
JACOBI_SLOWER_MAX = 4
SWAP_MIN = 5
SPREAD_MAX = 0.05
SENT_MAX = 1.2
PAGE_BYTES = 4096
MIB = 2**20


@dataclass
class Verdict:
    """One line of the table."""

    title: str
    measured: str
    asked: str
    verdict: str


def judged(title, measured, asked, is_met):
    return Verdict(title, measured, asked, "met" if is_met else "NOT MET")


def median(lines, key):
    return statistics.median(line[key] for line in lines)


def fault_latency(lines, echo, redis):
    """Floor, and what Redis takes more than that, are together its own round trip."""
    p50, most = median(lines, "p50_us"), redis["p50_us"] + FAULT_US_MORE
    return judged(
        "4 KiB random fault, 1 thread, p50",
        f"{p50:.1f} us (TCP echo {echo['p50_us']:.1f}, Redis {redis['p50_us']:.1f})",
        f"<= {most:.1f} us: Redis' + {FAULT_US_MORE}", p50 <= most)


def fault_rate(lines, benchmark, with_many):
    """Faults a second, hits not counted, of eight threads: as many requests are on their way as
    with one client of redis-benchmark and -P 8. That with its 50 clients stands beside it."""
    rate = statistics.median(line["fault_fills"] / line["seconds"] for line in lines)
    return judged(
        "4 KiB random faults, 8 threads",
        f"{rate / 1000:.1f} k/s; redis-benchmark -P 8: {benchmark / 1000:.1f} k/s"
        f" (50 clients: {with_many / 1000:.1f} k/s)",
        f">= {FAULT_RATE_MIN} x: {FAULT_RATE_MIN * benchmark / 1000:.1f} k/s",
        rate >= FAULT_RATE_MIN * benchmark)


def scan(lines, redis):
    rate, least = median(lines, "rate"), SCAN_MIN * redis["mib_s"]
    return judged("sequential scan, 1 thread",
                  f"{rate:.0f} MiB/s; hiredis, 64 KiB, 8 deep: {redis['mib_s']:.0f} MiB/s",
                  f">= {SCAN_MIN} x: {least:.0f} MiB/s", rate >= least)


def readers(count, alone, together):
    return judged(f"{count} readers of one data set, {alone:.0f} touches/s alone",
                  f"{together / alone:.2f} x", f">= {count * READERS_SHARE_MIN:.1f} x",
                  together >= count * READERS_SHARE_MIN * alone)


def stream_allowed(floor_mib_s, local_share):
    """MiB/s of STREAM that the network allows. STREAM counts each array that a kernel names once,
    two or three times the array's bytes. Of these the share that is not local crosses the network,
    once and in one direction: what is read comes, what is written goes. So the network's floor
    bandwidth carries floor / (1 - local) of STREAM's bytes a second. Nothing is granted for what
    Outcore must bring besides (a page before it is written to), nor for the arithmetic itself."""
    return floor_mib_s / (1 - local_share)


def stream(lines, echo, local_share):
    """Each kernel by its mean over the counted passes: the best, which STREAM prints, may owe its
    write-backs to the next kernel."""
    allowed = stream_allowed(echo["mib_s"], local_share)
    rates = {k: median(lines, f"{k}_mean_mib_s") for k in KERNELS}
    slower = {k: allowed / rate for k, rate in rates.items()}
    told = ", ".join(f"{k} {rates[k]:.0f} ({slower[k]:.1f} x)" for k in KERNELS)
    return judged(
        f"STREAM, {local_share:.0%} local", f"{told} MiB/s",
        f"<= {STREAM_SLOWER_MAX} x slower than {allowed:.0f} MiB/s, which the floor of "
        f"{echo['mib_s']:.0f} allows", max(slower.values()) <= STREAM_SLOWER_MAX)


def jacobi(far, dram):
    slower = median(far, "seconds") / median(dram, "seconds")
    return judged("Jacobi (Himeno), 10% local",
                  f"{slower:.1f} x dram: {median(far, 'mflops'):.0f} of "
                  f"{median(dram, 'mflops'):.0f} MFLOPS",
                  f"<= {JACOBI_SLOWER_MAX} x dram", slower <= JACOBI_SLOWER_MAX)


def swap(name, far, swapped):
    """A run that was stopped has taken at least as long as it was let."""
    title, asked = f"{name}, 15% local, against swap", f">= {SWAP_MIN} x as fast"
    seconds = median(far, "seconds")
    ratio = median(swapped, "seconds") / seconds
    stopped = [line for line in swapped if line["stopped"]]
    if stopped and (ratio < SWAP_MIN or not stopped[0]["stopped_because"].startswith(">")):
        return Verdict(title, f"{seconds:.1f} s", asked,
                       f"skipped: swap: {stopped[0]['stopped_because']}")
    at_least = "more than " if stopped else ""
    return judged(title, f"{at_least}{ratio:.1f} x: {seconds:.1f} s, swap "
                  f"{median(swapped, 'seconds'):.1f} s", asked, ratio >= SWAP_MIN)


def spread(lines):
    seconds = [line["seconds"] for line in lines]
    share = (max(seconds) - min(seconds)) / statistics.median(seconds)
    return judged(f"{len(seconds)} runs of one program: spread",
                  f"{share:.1%} of {statistics.median(seconds):.2f} s",
                  f"<= {SPREAD_MAX:.0%} on a quiet machine", share <= SPREAD_MAX)


def sent(said, sent_bytes, writes):
    dirty = said["dirty_pages"] * PAGE_BYTES
    return judged(
        f"{writes} random byte writes, rbd",
        f"{sent_bytes / MIB:.0f} MiB sent for {dirty / MIB:.0f} MiB of dirty pages: "
        f"{sent_bytes / dirty:.2f} x, {said['seconds']:.1f} s",
        f"<= {SENT_MAX} x, all bytes right", sent_bytes <= SENT_MAX * dirty and said["wrong"] == 0)


def failover(line, node_timeout_ms):
    return judged(
        "sort, one master of three killed",
        f"right answer, {line['seconds']:.1f} s; longest pause "
        f"{line['longest_pause_seconds']:.1f} s (cluster-node-timeout "
        f"{node_timeout_ms / 1000:.0f} s)",
        "right answer, pause reported", line["checked"] and line["longest_pause_seconds"] > 0)

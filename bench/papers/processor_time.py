"""processor_time: what the processors did while a benchmark ran, by kind of work.

perf samples all of the machine a thousand times a second. Of each sample the names of the
functions on its stack say what the work was for: the first kind of KINDS that one of them is in.
"""

import os
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter

from bench_command import Failed

HZ = 997
EXECUTABLE = "perf"

# In this order: a flush of translations counts as one whatever needed it.
KINDS = (
    ("flushes of translations", ("flush_tlb", "tlb_flush", "on_each_cpu_cond_mask",
                                 "smp_call_function_many")),
    ("idle", ("default_idle", "cpu_startup_entry", "do_idle", "mwait_idle", "acpi_idle")),
    ("holes (pages that leave a buffer)", ("shmem_fallocate", "shmem_undo_range",
                                           "truncate_inode_pages")),
    ("giving memory up", ("madvise_dontneed", "zap_page_range", "do_madvise", "madvise_")),
    ("the kernel's reclaim", ("shrink_", "try_to_free", "kswapd", "balance_pgdat", "evict_folios")),
    ("installing pages (userfaultfd)", ("userfaultfd_ioctl", "mfill_", "mwriteprotect",
                                        "move_pages")),
    ("asking the kernel (presence, sizes)", ("mincore", "newfstat", "shmem_file_llseek", "statx",
                                             "pagemap")),
    ("reading and writing the store", ("ksys_read", "ksys_write", "ksys_pread", "ksys_pwrite",
                                       "vfs_read", "vfs_write", "pread64", "pwrite64", "preadv",
                                       "pwritev", "io_uring", "submit_bio", "blk_", "zram_",
                                       "writeback", "wb_work", "filemap_fault", "page_cache_ra")),
    ("signals", ("get_signal", "arch_do_signal", "setup_rt_frame", "rt_sigreturn", "force_sig",
                 "send_signal", "restore_sigcontext", "x64_setup_rt_frame")),
    ("faults in the kernel", ("exc_page_fault", "asm_exc_page_fault", "handle_mm_fault",
                              "do_user_addr_fault")),
    ("waiting and waking", ("futex", "schedule", "try_to_wake_up", "poll", "nanosleep")),
)
REST_OF_KERNEL, OWN, PROGRAM, OTHERS = ("the rest of the kernel", "Outcore's own code",
                                        "the program", "others")
# How the threads of servers are named, which have the same processors. Ceph's client in the program
# has threads of the same names.
SERVERS = (("the Redis server", ("redis-server", "io_thd_", "bio_")),
           ("Ceph, its client among it", ("ceph-", "msgr-worker", "tp_osd", "bstore", "rocksdb:",
                                          "io_context_pool", "ms_", "fn_", "safe_timer")))
_FUNCTIONS_MAX = 5


def kind_of(process, stack, names=("outcore",)):
    """`stack`: (function, whether it is the kernel's), the innermost first. `names`: how those of
    the program's processes begin."""
    for kind, begins in SERVERS:
        if process.startswith(begins):
            return kind
    for kind, parts in KINDS:
        if any(is_kernel and part in name for name, is_kernel in stack for part in parts):
            return kind
    if any(is_kernel for _, is_kernel in stack[:1]):
        return REST_OF_KERNEL
    if not process.startswith(tuple(names)):
        return OTHERS
    # What it calls, memcpy say, works for the first caller that is known.
    for name, _ in stack:
        if "outcore::bench::" in name:
            return PROGRAM
        if "outcore::" in name:
            return OWN
    return PROGRAM


def read_samples(text):
    """(seconds, process, stack) of each sample that `perf script` prints."""
    for block in text.split("\n\n"):
        lines = block.strip("\n").splitlines()
        if not lines or ":" not in lines[0]:
            continue
        *process, at = lines[0].split()
        stack = []
        for line in lines[1:]:
            address, _, rest = line.strip().partition(" ")
            name, _, _ = rest.rpartition(" (")
            stack.append((name, len(address) == 16 and address.startswith("ffff")))
        yield float(at.rstrip(":")), " ".join(process), stack


def seconds_by_kind(samples, since, until, names=("outcore",)):
    """Seconds of processors, of samples between two times of the machine's clock."""
    counts = Counter(kind_of(process, stack, names) for at, process, stack in samples
                     if since <= at < until)
    return {kind: count / HZ for kind, count in counts.most_common()}


def own_functions(samples, since, until, names=("outcore",)):
    """Seconds of processors by function of Outcore's own code, of those that took most."""
    counts = Counter(_short(next(name for name, _ in stack if "outcore::" in name))
                     for at, process, stack in samples
                     if since <= at < until and kind_of(process, stack, names) == OWN)
    return {name: count / HZ for name, count in counts.most_common(_FUNCTIONS_MAX)}


def _short(name):
    """The class and the function, of result outcore::paging::Class::function<T>(Words)."""
    name = name.replace("(anonymous namespace)::", "").replace("operator()", "operator call")
    begin = re.search(r"(?:^|[ )])outcore::([\w:~ ]+)", name)
    return "::".join(begin[1].strip(":").split("::")[-2:]) if begin else name


def check():
    """Failed, with the remedy, where there is no perf that works."""
    try:
        subprocess.run([EXECUTABLE, "record", "-a", "-e", "cpu-clock", "-o", os.devnull, "--",
                        "true"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as why:
        raise Failed(f"--profile needs perf, which does not work here ({why}): install "
                     "linux-perf, and lower kernel.perf_event_paranoid") from None


def _wait_for(perf, data):
    """Until it samples: it writes its head before."""
    until = time.monotonic() + 30
    while perf.poll() is None and time.monotonic() < until:
        if os.path.exists(data) and os.path.getsize(data) > 4096:
            return
        time.sleep(0.05)
    raise Failed("perf record does not begin")


def sample(work):
    """What work() returns, and samples of all of the machine meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "perf.data")
        words = [EXECUTABLE, "record", "-a", "-g", "-e", "cpu-clock", "-F", str(HZ), "-k",
                 "CLOCK_MONOTONIC", "-o", data]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as perf:
            try:
                _wait_for(perf, data)
                result = work()
            finally:
                perf.send_signal(signal.SIGINT)
                try:
                    perf.wait(timeout=120)
                except subprocess.TimeoutExpired:
                    perf.kill()
        if perf.returncode not in (0, 130, -signal.SIGINT):
            raise Failed(f"perf record ended with status {perf.returncode}")
        said = subprocess.run([EXECUTABLE, "script", "-i", data, "-F", "comm,time,ip,sym,dso",
                               "--ns"], capture_output=True, text=True, check=False,
                              errors="replace")
        if said.returncode != 0 or not said.stdout:
            raise Failed(f"perf script: {(said.stderr.strip().splitlines() or ['no samples'])[-1]}")
        return result, list(read_samples(said.stdout))

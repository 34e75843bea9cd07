#!/usr/bin/env python3
"""run_tests: the tests that ctest knows of a build; those of one program share processes.

Usage: tools/run_tests.py BUILD --junit FILE [--label RE] [--without-label RE] [--without RE]
       [--jobs N] [--timeout SECONDS]

ctest starts a process for each case of Google Test, which takes a fifth of the time of a sanitized
suite. Here up to CASES_MAX cases of one program run one after the other in one process (a shard);
cases of a suite stay together, and with them what it starts once. When a process dies, the case
that was running has failed, and those behind it go on in a new process. A case that fails among
others is run again alone: it stays failed, and the report says what it did alone. Suites whose
cases must not share a process have the label `alone`. Everything that is no case of Google Test
runs as ctest would run it.

How long each test took stays in BUILD/test_times.json: the longest shards start first. Before the
first run ctest's COST says it, where it is set.
"""

import argparse
import json
import os
import pathlib
import queue
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
import traceback
import xml.etree.ElementTree as xml

CASES_MAX = 20
SHARD_SECONDS = 8.0  # of one shard, where the times are known
UNKNOWN_SECONDS = 0.3
OUTPUT_MAX = 64 << 10  # of one test that stays in the report
KILL_SECONDS = 30.0  # for a process that is killed to be gone
DRAIN_SECONDS = 5.0  # for what a process that is gone has left in the pipe
ENDS = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}
RUN = re.compile(r"\[ RUN      \] (\S+)$")
END = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:,.*)? \((\d+) ms\)$")


class Test:
    """One test of ctest: its name, how to run it, and afterwards its outcome."""

    def __init__(self, entry, seconds_max):
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        self.name = entry["name"].split("  # ")[0]
        self.command = entry.get("command", [])  # none: its program is not built
        # ctest knows no label of what is not built: test_NAME_NOT_BUILT has the label NAME.
        built_none = re.fullmatch(r"test_(.+)_NOT_BUILT", self.name)
        self.labels = [built_none[1]] if built_none else properties.get("LABELS", [])
        self.folder = properties.get("WORKING_DIRECTORY")
        self.environment = dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))
        self.timeout = properties.get("TIMEOUT", seconds_max)
        self.skip_code = properties.get("SKIP_RETURN_CODE")
        self.seconds_expected = float(properties.get("COST", UNKNOWN_SECONDS))
        cases = [a for a in self.command if a.startswith("--gtest_filter=")]
        self.case = cases[0].split("=", 1)[1] if cases else None
        self.outcome = None  # passed, failed or skipped
        self.seconds = 0.0
        self.output = ""

    def ends(self, outcome, seconds, output):
        self.outcome, self.seconds = outcome, seconds
        self.output = output[-OUTPUT_MAX:]


class Process:
    """A program under test in a process group of its own, and what it says, by lines."""

    def __init__(self, test, command):
        self.started = subprocess.Popen(
            command, cwd=test.folder, env={**os.environ, **test.environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        self.pipe = self.started.stdout.fileno()
        os.set_blocking(self.pipe, False)
        self.is_late = False

    def lines(self, seconds_max):
        """Until it is gone; `seconds_max` begins anew whenever the caller's case ends."""
        self.deadline = time.monotonic() + seconds_max
        held, drained_by = b"", None
        with selectors.DefaultSelector() as selector:
            selector.register(self.pipe, selectors.EVENT_READ)
            while True:
                selector.select(0.2)
                now = time.monotonic()
                if now > self.deadline and not self.is_late:
                    self.is_late = True
                    self.kill()
                if self.started.poll() is not None and drained_by is None:
                    drained_by = now + DRAIN_SECONDS  # a child may have the pipe, too
                part = self.read()
                if part:
                    *whole, held = (held + part).split(b"\n")
                    yield from (line.decode(errors="replace") for line in whole)
                if part == b"" or (drained_by and now > drained_by):
                    break
        if held:
            yield held.decode(errors="replace")

    def read(self):
        """Bytes; none at the end; None where there are none yet."""
        try:
            return os.read(self.pipe, 1 << 16)
        except BlockingIOError:
            return None

    def kill(self):
        try:
            os.killpg(self.started.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def status(self):
        """How it ended; what it left behind in its group ends, too."""
        try:
            self.started.wait(timeout=max(self.deadline - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            self.is_late = True
        self.kill()
        try:
            self.started.wait(timeout=KILL_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # the kernel holds it: it has failed, and nobody waits for it
        self.started.stdout.close()
        return -signal.SIGKILL if self.started.returncode is None else self.started.returncode

    def last_words(self, status):
        if self.is_late:
            return "took longer than it may and was killed"
        if status < 0:
            return f"ended by signal {-status} ({signal.strsignal(-status) or 'unknown'})"
        return f"ended with exit status {status}"


class Runner:
    """Runs shards (lists of tests) by several threads."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.running = set()
        self.extra = []  # failures that no case is to blame for
        self.lock = threading.Lock()
        self.is_over = False

    def start(self, test, command):
        process = Process(test, command)
        with self.lock:
            self.running.add(process)
            if self.is_over:
                process.kill()
        return process

    def finish(self, process):
        status = process.status()
        with self.lock:
            self.running.discard(process)
        return status

    def run_plain(self, test):
        began = time.monotonic()
        process = self.start(test, test.command)
        output = "\n".join(process.lines(test.timeout))
        status = self.finish(process)
        outcome = "passed" if status == 0 else "failed"
        if status == test.skip_code and not process.is_late:
            outcome = "skipped"
        if outcome == "failed":
            output += "\n" + process.last_words(status)
        test.ends(outcome, time.monotonic() - began, output)

    def run_cases(self, tests):
        """In one process, and as many more as die."""
        pending = {test.case: test for test in tests}
        while pending and not self.is_over:
            before = set(pending)
            first = next(iter(pending.values()))
            command = [a for a in first.command if not a.startswith("--gtest_filter=")]
            process = self.start(first, [*command, "--gtest_filter=" + ":".join(pending)])
            said = self.follow(process, pending)
            status = self.finish(process)
            ended = [t for t in tests if t.case in before and t.case not in pending]
            if not ended:  # it died outside of cases, or knows none of them
                pending.pop(first.case).ends(
                    "failed", 0.0, "\n".join([*said, process.last_words(status)]))
            elif status != 0 and all(t.outcome != "failed" for t in ended):
                last = Test({"name": f"{pathlib.Path(command[0]).name}: after {ended[-1].name}",
                             "command": command}, 0)
                last.ends("failed", 0.0, "\n".join([*said, process.last_words(status)]))
                with self.lock:
                    self.extra.append(last)

    def follow(self, process, pending):
        """Takes each case that ends from `pending`. Returns what was said outside of cases."""
        running, began, output, outside = None, 0.0, [], []
        seconds_max = next(iter(pending.values())).timeout
        for line in process.lines(seconds_max):
            run, end = RUN.search(line), END.search(line)
            if run and running:  # its end was not understood
                pending.pop(running).ends("failed", 0.0, "\n".join([*output, "no end was told"]))
                running = None
            if run and run[1] in pending:
                running, began, output = run[1], time.monotonic(), []
                process.deadline = began + pending[running].timeout
            elif end and end[2] == running:
                output.append(line)
                pending.pop(running).ends(ENDS[end[1]], int(end[3]) / 1000, "\n".join(output))
                running, process.deadline = None, time.monotonic() + seconds_max
            else:
                (output if running else outside).append(line)
        if running:
            status = self.finish(process)
            output.append(process.last_words(status))
            pending.pop(running).ends("failed", time.monotonic() - began, "\n".join(output))
        return outside

    def run_shard(self, tests):
        if tests[0].case is None:
            self.run_plain(tests[0])
            return
        self.run_cases(tests)
        if len(tests) > 1:
            for test in tests:
                if test.outcome == "failed" and not self.is_over:
                    self.try_alone(test)

    def try_alone(self, test):
        said, seconds = test.output, test.seconds
        self.run_cases([test])
        alone = f"-- alone it {test.outcome}"
        test.ends("failed", seconds, f"{test.output}\n{alone}\n-- among others:\n{said}")

    def run(self, shards):
        waiting = queue.SimpleQueue()
        for shard in shards:
            waiting.put(shard)
        done = iter(range(1, len(shards) + 1))

        def work():
            while not self.is_over:
                try:
                    shard = waiting.get_nowait()
                except queue.Empty:
                    return
                began = time.monotonic()
                try:
                    self.run_shard(shard)
                except Exception:  # of the system (no process, no memory): no test passes by it
                    for test in shard:
                        if test.outcome is None:
                            test.ends("failed", 0.0, traceback.format_exc())
                with self.lock:
                    tell(next(done), len(shards), shard, time.monotonic() - began)

        threads = [threading.Thread(target=work) for _ in range(self.jobs)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            with self.lock:
                self.is_over = True
                for process in self.running:
                    process.kill()
            raise


def tell(number, count, shard, seconds):
    name = shard[0].name
    if len(shard) > 1:
        name = f"{pathlib.Path(shard[0].command[0]).name}: {len(shard)} from {name}"
    failed = [t for t in shard if t.outcome == "failed"]
    print(f"{number:5}/{count}  {'FAILED' if failed else 'passed'} {seconds:6.1f} s  {name}",
          flush=True)
    for test in failed:
        print(f"  failed: {test.name}\n    " + "\n    ".join(test.output.splitlines()[-60:]),
              flush=True)


def tests_of(build, seconds_max):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                            stdout=subprocess.PIPE)
    return [Test(entry, seconds_max) for entry in json.loads(listed.stdout)["tests"]]


def is_chosen(test, options):
    def has(pattern):
        return any(re.search(pattern, label) for label in test.labels)
    return ((not options.label or has(options.label)) and
            not (options.without_label and has(options.without_label)) and
            not (options.without and re.search(options.without, test.name)))


def in_shards(tests, times):
    """Neighbours of one program together, the longest shards first."""
    shards = []
    for test in tests:
        seconds = times.get(test.name, test.seconds_expected)
        joins = (shards and test.case and "alone" not in test.labels and
                 shards[-1][0][0].case and shards[-1][0][0].command[0] == test.command[0] and
                 shards[-1][0][0].environment == test.environment and
                 len(shards[-1][0]) < CASES_MAX and shards[-1][1] + seconds <= SHARD_SECONDS)
        if joins:
            shards[-1] = (shards[-1][0] + [test], shards[-1][1] + seconds)
        else:
            shards.append(([test], seconds))
    return [tests for tests, _ in sorted(shards, key=lambda s: -s[1])]


def write_junit(path, tests):
    root = xml.Element("testsuite", tests=str(len(tests)))
    for test in tests:
        case = xml.SubElement(root, "testcase", name=test.name, time=f"{test.seconds:.3f}",
                              status={"failed": "fail", "skipped": "notrun"}.get(
                                  test.outcome, "run"))
        if test.outcome == "failed":
            xml.SubElement(case, "failure", message="")
        if test.outcome == "skipped":
            xml.SubElement(case, "skipped")
        if test.outcome != "passed":
            said = "".join(c for c in test.output if c in "\n\t" or ord(c) >= 32)
            xml.SubElement(case, "system-out").text = said
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    xml.ElementTree(root).write(path, encoding="unicode")


def read_times(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--junit", required=True)
    parser.add_argument("--label")
    parser.add_argument("--without-label")
    parser.add_argument("--without")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=float, default=300)
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    # In the background of a script they are ignored, and a shell cannot trap what it finds ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    times_path = pathlib.Path(options.build) / "test_times.json"
    times = read_times(times_path)
    tests = [t for t in tests_of(options.build, options.timeout) if is_chosen(t, options)]
    missing = [t.name for t in tests if not t.command]
    if missing or not tests:
        why = f"{missing[0]}: cmake --build {options.build}" if missing else "no test is chosen"
        print(f"run_tests: {why}", file=sys.stderr)
        return 2
    runner = Runner(options.jobs)
    runner.run(in_shards(tests, times))
    tests += runner.extra
    for test in tests:
        if test.outcome is None:
            test.ends("failed", 0.0, "it never ran")
    write_junit(options.junit, tests)
    try:
        times_path.write_text(json.dumps({**times, **{t.name: t.seconds for t in tests}}),
                              encoding="utf-8")
    except OSError:
        pass  # nobody may not
    counts = {o: sum(t.outcome == o for t in tests) for o in ("passed", "failed", "skipped")}
    print(", ".join(f"{n} {outcome}" for outcome, n in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

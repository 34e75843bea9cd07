"""The USDT probes: the kernel counts at each as many passes as Outcore counts pages."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import programs

TRACING = pathlib.Path("/sys/kernel/tracing")


def read_elf(option, library):
    return subprocess.run(["readelf", option, "-W", str(library)], check=True,
                          capture_output=True, encoding="utf-8").stdout


def places_of_probes(library):
    """By name, where in the file the instructions of each probe are."""
    segments = [tuple(int(number, 16) for number in found) for found in re.findall(
        r"(?m)^ +LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", read_elf("-l", library))]
    places = {}
    for name, location in re.findall(
            r"Provider: outcore\s+Name: (\w+)\s+Location: (0x\w+)", read_elf("-n", library)):
        at = int(location, 16)
        offset, = (at - address + offset for offset, address, size in segments
                   if address <= at < address + size)
        places.setdefault(name, []).append(offset)
    return places


def why_the_kernel_cannot_count():
    if os.geteuid() != 0:
        return "setting probes needs root"
    if not (TRACING / "uprobe_events").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", str(TRACING)], check=False,
                       capture_output=True)
    if not (TRACING / "uprobe_events").exists():
        return "this kernel has no uprobes, or no tracefs may be mounted"
    return None


class Probes(programs.SightTest):
    def setUp(self):
        super().setUp()
        # A file of its own: the kernel counts what all who run it do.
        for name in ("outcore", "liboutcore_preload.so"):
            shutil.copy(programs.BUILD / "bin" / name, self.folder)
        self.library = self.folder / "liboutcore_preload.so"

    def test_there_are_three(self):
        self.assertEqual(set(places_of_probes(self.library)), {"fill", "evict", "write_back"})

    def tell_kernel(self, file, text):
        control = os.open(TRACING / file, os.O_WRONLY | os.O_APPEND)  # open() would seek
        try:
            os.write(control, text.encode() + b"\n")
        finally:
            os.close(control)

    def passes(self, group, library):
        counts = {}
        for line in (TRACING / "uprobe_profile").read_text(encoding="utf-8").splitlines():
            *_, event, count = line.split()
            if str(library) in line and (name := event.removeprefix(group + "_")) != event:
                name = name.rsplit("_", 1)[0]
                counts[name] = counts.get(name, 0) + int(count)
        return counts

    def pages_counted(self, process):
        """What Outcore counts of it, by the names of the probes."""
        counters = json.loads(self.run_outcore("stat", process, "--json").stdout)["counters"]
        return {"fill": counters["fills"] + counters["prefetch_fills"],
                "evict": counters["evictions"], "write_back": counters["write_backs"]}

    def test_the_kernel_counts_as_many_pages_as_outcore(self):
        if (reason := why_the_kernel_cannot_count()) is not None:
            self.skipTest(reason)
        group = f"outcore_test_{os.getpid()}"
        with contextlib.ExitStack() as ends:
            for name, places in places_of_probes(self.library).items():
                for number, place in enumerate(places):
                    event = f"{group}_{name}_{number}"
                    self.tell_kernel("uprobe_events", f"p:{group}/{event} {self.library}:{place}")
                    ends.callback(self.tell_kernel, "uprobe_events", f"-:{group}/{event}")
                    self.tell_kernel(f"events/{group}/{event}/enable", "1")
                    ends.callback(self.tell_kernel, f"events/{group}/{event}/enable", "0")
            program = self.start_scan(command=self.folder / "outcore")
            # It touches nothing now, but what it has asked for may still be brought in and out.
            self.wait_until(
                lambda: self.passes(group, self.library) == self.pages_counted(program.pid))
            self.assertGreater(self.pages_counted(program.pid)["evict"], 1000)


if __name__ == "__main__":
    unittest.main()

"""outcore run --report FILE.html of programs that end without exit(): what they had counted."""

import os
import signal
import sys
import unittest

import programs
from test_watched_run import runs_in

# Reads the file by its pages, waits for a word, and ends as it is told: each way has its words.
READER = """
import mmap, os, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: (pages.close(), os._exit(5)))
signal.signal(signal.SIGUSR2, lambda *_: (pages.close(), os.abort()))
file = open(sys.argv[1], "rb")
pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
print("read", sum(pages[::4096]), flush=True)
os.read(0, 1)
way, *rest = sys.argv[2:]
if way == "_exit":
    os._exit(5)
if way == "true":
    os.execvp("true", ["true"])
if way == "again":
    os.execv(sys.executable, [sys.executable, sys.argv[0], sys.argv[1], *rest])
if way == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""

# Reads all of the file; at each SIGUSR1 its first page, mapped again.
AGAIN = """
import mmap, os, signal, sys
file = open(sys.argv[1], "rb")
def read(step):
    global pages
    pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return sum(pages[:len(pages) // step:4096])
def again(*_):
    pages.close()
    read(2048)
    print("again", flush=True)
signal.signal(signal.SIGUSR1, again)
signal.signal(signal.SIGUSR2, lambda *_: os._exit(5))
read(1)
print("read", flush=True)
while True:
    signal.pause()
"""


class EndedRun(programs.WatchedTest):
    def end_seen(self, *ways, status):
        """A reader that ends so, seen before by its watcher: its runs on the page."""
        (self.folder / "reader.py").write_text(READER)
        watcher = self.start("--report", self.page, program=[
            sys.executable, "reader.py", self.shared / "data", *ways])
        for seen in range(1 + ways.count("again")):
            self.assertTrue(watcher.stdout.readline().startswith(b"read"))
            self.wait_until_seen(watcher, seen + 1)
            watcher.stdin.write(b"x")
            watcher.stdin.flush()
        self.assertEqual(watcher.wait(programs.WAIT_S), status)
        runs = runs_in(self.page)
        for run in runs:
            self.assertGreater(run["counters"]["fills"] + run["counters"]["prefetch_fills"], 0)
        return runs

    def test_a_program_that_ends_beside_exit_has_a_page_of_what_it_had_counted(self):
        for way, status in (("_exit", 5), ("true", 0)):
            run, = self.end_seen(way, status=status)
            self.assertIn("without exit()", run["ended"])
            self.assertNotIn("timeline", run)
            self.page.unlink()

    def test_files_that_were_mapped_when_it_was_looked_at_last_are_on_the_page(self):
        (self.folder / "reader.py").write_text(READER)
        for number, status in ((signal.SIGUSR1, 5), (signal.SIGUSR2, -signal.SIGABRT)):
            watcher = self.start("--report", self.page, "--policy", "fifo", program=[
                sys.executable, "reader.py", self.shared / "data", "pause"])
            self.assertTrue(watcher.stdout.readline().startswith(b"read"))
            watcher.send_signal(number)
            self.assertEqual(watcher.wait(programs.WAIT_S), status)
            run, = runs_in(self.page)
            file, = (f for f in run["files"] if f["uri"].endswith("/data"))
            self.assertGreater(file["touched_bytes"], 0)
            self.assertGreater(file["counters"]["fills"], 0)
            self.assertEqual(file["resident_bytes"], 0, "it is not mapped any more")
            self.assertEqual(run["settings"]["policy"], "fifo")
            self.assertEqual(run["settings"]["budget"], "4M")
            self.assertNotIn("report", run["settings"])
            self.assertEqual(run["environment"]["host"], os.uname().nodename)
            self.assertEqual(run["environment"]["kernel"], os.uname().release)
            self.assertRegex(run["program"]["started"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.page.unlink()

    def test_a_file_that_was_mapped_again_has_what_was_counted_before(self):
        (self.folder / "reader.py").write_text(AGAIN)
        watcher = self.start("--report", self.page, program=[
            sys.executable, "reader.py", self.shared / "data"])
        self.assertEqual(watcher.stdout.readline(), b"read\n")
        for _ in range(2):  # its watcher looks before it hands a signal on
            watcher.send_signal(signal.SIGUSR1)
            self.assertEqual(watcher.stdout.readline(), b"again\n")
        watcher.send_signal(signal.SIGUSR2)
        self.assertEqual(watcher.wait(programs.WAIT_S), 5)
        run, = runs_in(self.page)
        # But for what came between a look and the end of a mapping.
        told = sum(file["counters"]["read_bytes"] for file in run["files"])
        self.assertLessEqual(told, run["counters"]["read_bytes"])
        self.assertGreater(told, 0.9 * run["counters"]["read_bytes"])

    def test_no_password_and_no_variable_of_others_is_on_the_page(self):
        self.environment = dict(
            self.environment, OUTCORE_TOKEN="SECRET1", OUTCORE_CHECKPOINT_KEEP="3",
            OUTCORE_SCRATCH="redis://u:SECRET2@h",
            OUTCORE_CHECKPOINT_POOL="versioned://u:SECRET4@h")
        for ways, status in ((("kill",), -signal.SIGKILL), (("exit",), 0)):
            run, = self.end_seen(*ways, status=status)
            self.assertNotIn("SECRET", self.page.read_text())
            self.assertEqual(run["settings"]["checkpoint_keep"], "3")
            self.assertEqual(run["settings"]["checkpoint_pool"], "versioned://u:***@h")
            self.assertFalse({"token", "scratch"} & run["settings"].keys())
            self.page.unlink()

    def test_a_program_that_became_another_has_both_on_its_page(self):
        first, second = self.end_seen("again", "kill", status=-signal.SIGKILL)
        self.assertIn("became another program", first["ended"])
        self.assertIn("signal 9", second["ended"])
        self.assertNotEqual(first["program"]["arguments"], second["program"]["arguments"])
        whole, first = self.end_seen("again", "exit", status=0)
        self.assertNotIn("ended", whole)
        self.assertIn("became another program", first["ended"])

    def test_what_a_killed_program_had_counted_is_on_the_page(self):
        for number in (signal.SIGKILL, signal.SIGABRT):
            watcher, program = self.start_seen()
            os.kill(program, number)
            self.assertEqual(watcher.wait(programs.WAIT_S), -number)
            run, = runs_in(self.page)
            self.assertIn(f"was ended by signal {number:d} (", run["ended"])
            self.assertIn(run["ended"], run["verdict"]["sentences"][0])
            self.assertGreater(run["counters"]["faults"], 1000)
            self.assertTrue(any(f["uri"].endswith("/data") and f["touched_bytes"] > 0
                                for f in run["files"]), run["files"])
            self.assertEqual(run["program"]["pid"], program)
            self.assertIn("scan", run["program"]["command"])
            self.page.unlink()


if __name__ == "__main__":
    unittest.main()

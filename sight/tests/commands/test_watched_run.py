"""outcore run --report FILE.html and --metrics: the command stays beside the program."""

import json
import os
import pty
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import termios
import unittest
import urllib.request

import programs
import test_export
import test_report

# Says its number, counts what it is sent, and ends with the count at SIGUSR1.
COUNTER = """
import os, signal, sys
count = 0
def on_signal(number, frame):
    global count
    count += 1
    print("got", number, flush=True)
signal.signal(signal.SIGINT, on_signal)
signal.signal(signal.SIGTERM, on_signal)
signal.signal(signal.SIGUSR1, lambda *_: os._exit(10 + count))
print("pid", os.getpid(), flush=True)
while True:
    signal.pause()
"""


def runs_in(path):
    return test_report.runs_in(path.read_text())


def state_of(process):
    """As /proc has it; None: there is no such process."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


class WatchedRun(programs.WatchedTest):
    def start_counter(self, **more):
        watcher = self.start("--report", self.page, program=[sys.executable, "-c", COUNTER], **more)
        return watcher, int(watcher.stdout.readline().split()[1])

    def assert_one_line(self, done, why):
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        self.assertIn(why, done.stderr.decode())

    def test_the_exit_status_is_the_programs_and_there_is_a_page(self):
        for status in (0, 7, 255):
            done = self.scan("--report", "x.html", status=status)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(done.stdout, b"touched\n")
            run, = runs_in(self.page)
            self.assertGreater(run["counters"]["faults"], 1000)
            self.assertEqual(run["settings"]["report"], str(self.page))
            self.page.unlink()

    def test_a_program_that_a_signal_ends_ends_the_command_so_and_leaves_no_page(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            done = self.watch("--report", self.page, program=["sh", "-c", f"kill -{number:d} $$"])
            self.assertEqual(done.returncode, -number)
            self.assert_one_line(done, f"ended by signal {number:d}")
            self.assertFalse(self.page.exists())

    def test_what_is_sent_to_the_command_reaches_the_program_once(self):
        watcher, program = self.start_counter()
        self.assertNotEqual(program, watcher.pid)
        for count in range(3):
            watcher.send_signal(signal.SIGTERM if count < 2 else signal.SIGINT)
            self.assertTrue(watcher.stdout.readline().startswith(b"got"))
        watcher.send_signal(signal.SIGUSR1)
        self.assertEqual(watcher.wait(programs.WAIT_S), 13)
        self.assertIsNone(state_of(program), "nothing of it is left")

    def test_sigterm_ends_both(self):
        watcher, program = self.start_seen()
        watcher.send_signal(signal.SIGTERM)
        self.assertEqual(watcher.wait(programs.WAIT_S), -signal.SIGTERM)
        self.assertIsNone(state_of(program))

    def test_ctrl_c_of_a_terminal_reaches_the_program_once(self):
        words = self.words("--report", self.page, program=[sys.executable, "-c", COUNTER])
        watcher, terminal = pty.fork()
        if watcher == 0:
            os.chdir(self.folder)
            os.execve(words[0], words, self.environment)
        try:
            shape = termios.tcgetattr(terminal)
            shape[3] &= ~termios.ECHO
            termios.tcsetattr(terminal, termios.TCSANOW, shape)
            with os.fdopen(os.dup(terminal), "rb", buffering=0) as said:
                self.assertIn(b"pid", self.line_of(said))
                os.write(terminal, b"\x03")
                self.assertIn(b"got 2", self.line_of(said))
                os.kill(watcher, signal.SIGUSR1)  # forwarded after whatever else there is
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(watcher, 0)[1]), 11)
                watcher = 0
        finally:
            if watcher != 0:
                os.kill(watcher, signal.SIGKILL)
                os.waitpid(watcher, 0)
            os.close(terminal)

    @staticmethod
    def line_of(said):
        line = b""
        while not line.endswith(b"\n"):
            line += said.read(1)
        return line

    def test_a_program_that_its_terminal_stops_stops_the_command_and_both_go_on(self):
        # In a group of its own, as a shell's job: the kernel stops no group that has no shell.
        watcher, program = self.start_counter(preexec_fn=os.setpgrp)
        for _ in range(2):
            os.kill(program, signal.SIGTSTP)
            _, status = os.waitpid(watcher.pid, os.WUNTRACED)
            self.assertTrue(os.WIFSTOPPED(status), status)
            self.assertEqual(state_of(program), "T")
            watcher.send_signal(signal.SIGCONT)
            watcher.send_signal(signal.SIGTERM)
            self.assertEqual(watcher.stdout.readline(), b"got 15\n")
        watcher.send_signal(signal.SIGUSR1)
        self.assertEqual(watcher.wait(programs.WAIT_S), 12)

    def test_who_goes_on_before_the_command_has_stopped_goes_on_with_both(self):
        watcher, program = self.start_counter(preexec_fn=os.setpgrp)
        watcher.send_signal(signal.SIGSTOP)  # it will find both at once
        while state_of(watcher.pid) != "T":
            pass
        os.kill(program, signal.SIGTSTP)
        while state_of(program) != "T":
            pass
        watcher.send_signal(signal.SIGCONT)
        watcher.send_signal(signal.SIGTERM)
        self.assertEqual(watcher.stdout.readline(), b"got 15\n")
        watcher.send_signal(signal.SIGUSR1)
        self.assertEqual(watcher.wait(programs.WAIT_S), 11)

    def test_who_stops_the_program_alone_goes_on_with_the_program_alone(self):
        watcher, program = self.start_counter()
        os.kill(program, signal.SIGSTOP)
        while state_of(program) != "T":
            pass
        watcher.send_signal(signal.SIGTERM)  # it waits there until the program goes on
        os.kill(program, signal.SIGCONT)
        self.assertEqual(watcher.stdout.readline(), b"got 15\n")
        os.kill(program, signal.SIGUSR1)
        self.assertEqual(watcher.wait(programs.WAIT_S), 11)

    def test_who_ignores_the_end_of_children_is_told_of_this_one(self):
        program = [sys.executable, "-c", "import signal, sys;"
                   "sys.exit(4 + (signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN))"]
        ignoring = self.watch("--report", self.page, program=program, preexec_fn=lambda:
                              signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(ignoring.returncode, 5, "the program has it as it was")
        self.assertEqual(self.watch("--report", self.page, program=program).returncode, 4)

    def test_the_program_has_the_signal_mask_of_the_command(self):
        program = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
        plain = self.watch(program=program, preexec_fn=lambda:
                           signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]))
        watched = self.watch("--report", self.page, program=program, preexec_fn=lambda:
                             signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]))
        self.assertEqual(watched.stdout, plain.stdout)

    def test_runs_of_children_are_on_the_page(self):
        scan = f"{self.shared}/scan {self.shared}/data"
        done = self.watch("--report", self.page, program=[
            "sh", "-c", f"{scan} & {scan} 3; wait; exit 6"])
        self.assertEqual(done.returncode, 6, done.stderr)
        names = [run["program"]["command"] for run in runs_in(self.page)]
        self.assertEqual(sum("/scan " in name for name in names), 2, names)
        self.assertEqual(len({run["program"]["pid"] for run in runs_in(self.page)}), len(names))

    def test_a_page_that_cannot_be_is_refused_before_the_program_runs(self):
        for place in ("missing/x.html", "/dev/null/x.html", ""):
            done = self.watch("--report", place, program=["touch", "ran"])
            self.assertIn(done.returncode, (1, 2))
            self.assert_one_line(done, place)
        os.mkdir(self.folder / "folder.html")
        self.assert_one_line(self.watch("--report", "folder.html", program=["touch", "ran"]),
                             "folder.html")
        self.assertFalse((self.folder / "ran").exists())

    def test_a_watcher_that_cannot_be_is_told_and_leaves_no_temporary_file(self):
        # One descriptor beside the first three, and a pipe has two.
        done = self.watch("--report", self.page, program=["touch", "ran"], preexec_fn=lambda:
                          resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_one_line(done, "beside its watcher")
        self.assertFalse((self.folder / "ran").exists())

    def test_a_program_that_uses_nothing_of_it_has_no_page(self):
        done = self.watch("--report", self.page, program=["sh", "-c", "exit 9"])
        self.assertEqual(done.returncode, 9)
        self.assertLessEqual(done.stderr.count(b"\n"), 1, done.stderr)

    def test_a_program_that_is_not_there_is_said_so(self):
        for options in ((), ("--report", self.page), ("--metrics", "./m.prom")):
            done = self.watch(*options, program=["./nothing-there"])
            self.assertEqual(done.returncode, 127)
            self.assertIn(b"nothing-there", done.stderr)
        self.assertFalse(self.page.exists())

    def test_a_record_is_emptied_before_the_run_and_has_all_processes_of_it(self):
        record = self.folder / "r.json"
        record.write_text("of something else\n")
        done = self.scan("--report", "r.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"it is not a record of runs: name another file", done.stderr)
        self.assertEqual(record.read_text(), "of something else\n")
        record.write_text('{"format":"outcore-run","version":1}\n')
        for _ in range(2):
            self.assertEqual(self.scan("--report", "r.json").returncode, 0)
            self.assertEqual(record.read_text().count("\n"), 1)
        scan = f"{self.shared}/scan {self.shared}/data"
        self.watch("--report", "r.json", program=["sh", "-c", f"{scan}; {scan}"])
        runs = [json.loads(line) for line in record.read_text().splitlines()]
        self.assertEqual([run["program"]["arguments"] for run in runs], [scan.split()] * 2)


class Metrics(programs.SightTest, test_export.Format):
    def test_a_file_tells_of_this_run_alone_and_is_whole(self):
        self.start_scan()
        program = self.start_scan("--metrics", "./m.prom")
        path = self.folder / "m.prom"
        self.wait_until(lambda: test_export.total(self.read(path.read_text()),
                                                  "outcore_faults_total"))
        samples = self.read(path.read_text())
        self.assertEqual(len({dict(labels)["pid"] for _, labels in samples}), 1)
        self.assertNotIn(str(program.pid), {dict(labels)["pid"] for _, labels in samples})
        self.end(program)
        self.assertEqual(program.returncode, 0)
        self.assertEqual(os.listdir(self.folder), ["m.prom"])

    def test_a_file_that_cannot_be_written_any_more_is_told_once(self):
        (self.folder / "there").mkdir()
        program = self.start_scan("--metrics", "there/m.prom")
        shutil.rmtree(self.folder / "there")
        told = program.stderr.readline() + program.communicate(timeout=programs.WAIT_S)[1]
        self.assertEqual(told.count(b"write metrics to there/m.prom"), 1, told)
        self.assertEqual(program.returncode, 0)

    def test_a_port_serves_while_the_program_runs(self):
        words = [word for word in self.words_of_scan("--metrics", "0", status=3) if word != "-q"]
        program = subprocess.Popen(words, cwd=self.folder, env=self.environment,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.end, program)
        self.assertEqual(program.stdout.readline(), b"touched\n")
        url = re.search(rb"metrics at (\S+)", program.stderr.readline())[1].decode()
        with urllib.request.urlopen(url, timeout=programs.WAIT_S) as answer:
            samples = self.read(answer.read().decode())
        self.assertGreater(test_export.total(samples, "outcore_faults_total"), 1000)
        self.end(program)
        self.assertEqual(program.returncode, 3)
        with self.assertRaises(OSError):
            urllib.request.urlopen(url, timeout=programs.WAIT_S)

    def test_a_port_that_is_taken_is_told_before_the_program_runs(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.run_outcore("run", "-q", "--report", "x.html", "--metrics",
                             taken.getsockname()[1], "--", "touch", "ran", status=1)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(os.listdir(self.shared / "tmp"), [])


if __name__ == "__main__":
    unittest.main()

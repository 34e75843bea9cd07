"""What the tests of sight's commands share: the command, and a program that pages."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ.get("OUTCORE_TEST_BUILD_DIR",
                                    pathlib.Path(__file__).parents[3] / "build"))
OUTCORE = str(BUILD / "bin" / "outcore")
WAIT_S = 40  # for what comes at once, unless the machine is busy

# Maps the file and touches pages of it; says so, and again for each byte that it reads.
SCAN = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
static volatile unsigned long sum;
static unsigned long state = 1;
__attribute__((noinline)) void touch_pages(const volatile unsigned char* data,
                                           unsigned long pages) {
  for (unsigned long i = 0; i < 2 * pages; ++i) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    sum += data[(state >> 33) % pages * 4096]; /* the line */
  }
}
int main(int count, char** words) {
  struct stat about;
  int file = open(words[1], O_RDONLY);
  if (file < 0 || fstat(file, &about) != 0) return 90;
  void* data = mmap(NULL, about.st_size, PROT_READ, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return 91;
  char word;
  do {
    touch_pages(data, about.st_size / 4096);
    printf("touched\n");
    fflush(stdout);
  } while (read(0, &word, 1) == 1);
  return count > 2 ? atoi(words[2]) : 0;
}
"""
LINE = SCAN.split("/* the line */")[0].count("\n")  # of the file, which begins with an empty line


class SightTest(unittest.TestCase):
    """A folder, the program `scan`, compiled, and a file for it."""

    @classmethod
    def setUpClass(cls):
        if not os.access(OUTCORE, os.X_OK):
            raise unittest.SkipTest("the command is not built here")
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="outcore-sight-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        (cls.shared / "scan.c").write_text(SCAN)
        subprocess.run([os.environ.get("CC", "cc"), "-g", "-O1", "-o", "scan", "scan.c"],
                       cwd=cls.shared, check=True)
        (cls.shared / "data").write_bytes(os.urandom(8 << 20))
        # Commands find nothing of the machine's.
        cls.environment = {name: value for name, value in os.environ.items()
                           if not name.startswith("OUTCORE_")}
        cls.environment |= {"OUTCORE_CONFIG": "", "TMPDIR": str(cls.shared / "tmp"),
                            "OUTCORE_BUFFER_DIR": str(cls.shared / "buffers")}
        (cls.shared / "tmp").mkdir()

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.shared))

    def run_outcore(self, *words, status=0, **options):
        """Its result; with a status other than 0 standard error must be one line."""
        done = subprocess.run([OUTCORE, *map(str, words)], capture_output=True, cwd=self.folder,
                              env=self.environment, timeout=WAIT_S, check=False, **options)
        self.assertEqual(done.returncode, status, done)
        if status != 0:
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
            self.assertTrue(done.stderr.startswith(b"outcore: "), done.stderr)
        return done

    def words_of_scan(self, *options, file=None, status=0, scan=None, buffer="none",
                      command=OUTCORE):
        return [str(command), "run", "--min-size", "4k", "--budget", "4M", "--buffer", buffer, "-q",
                *map(str, options), "--", str(scan or self.shared / "scan"),
                str(file or self.shared / "data"), str(status)]

    def scan(self, *options, **more):
        """Runs `scan` to its end."""
        return subprocess.run(self.words_of_scan(*options, **more), cwd=self.folder,
                              env=self.environment, stdin=subprocess.DEVNULL, timeout=WAIT_S,
                              capture_output=True, check=False)

    def start_scan(self, *options, **more):
        """Starts `scan`, and returns when it has touched its file."""
        words = self.words_of_scan(*options, **more)
        program = subprocess.Popen(words, cwd=self.folder, env=self.environment,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.end, program)
        self.assertEqual(program.stdout.readline(), b"touched\n", program.poll())
        return program

    def wait_until(self, holds):
        """Returns when it holds; fails if that never comes."""
        end = time.monotonic() + WAIT_S
        while not holds():
            self.assertLess(time.monotonic(), end, "it never came")

    def touch_again(self, program):
        program.stdin.write(b"x")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), b"touched\n")

    def keep_touching(self, program):
        """It does nothing else from now on, until the test ends it."""
        self.addCleanup(program.kill)
        program.stdin.write(1000 * b"x")
        program.stdin.flush()

    @staticmethod
    def end(program):
        """Lets it end, and gives what it said on standard error."""
        try:
            return program.communicate(timeout=WAIT_S)[1]
        except ValueError:  # this was done before
            return b""
        except subprocess.TimeoutExpired:
            program.kill()
            return program.communicate()[1]


class WatchedTest(SightTest):
    """Programs beside their watchers, which make a page when they end."""

    def setUp(self):
        super().setUp()
        self.page = self.folder / "x.html"

    def tearDown(self):
        self.assertEqual(os.listdir(self.shared / "tmp"), [], "temporary files are gone")
        super().tearDown()

    def words(self, *options, program):
        return [OUTCORE, "run", "-q", "--min-size", "4k", "--budget", "4M", "--buffer",
                "none", *map(str, options), "--", *map(str, program)]

    def watch(self, *options, program, **more):
        return subprocess.run(self.words(*options, program=program), cwd=self.folder,
                              env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=WAIT_S, check=False, **more)

    def start(self, *options, program, **more):
        started = subprocess.Popen(self.words(*options, program=program), cwd=self.folder,
                                   env=self.environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.addCleanup(self.end, started)
        return started

    def wait_until_seen(self, watcher, count=1):
        """Until the watcher keeps what so many runtimes publish."""
        descriptors = pathlib.Path(f"/proc/{watcher.pid}/fd")

        def seen():
            inodes = set()
            for descriptor in descriptors.iterdir():
                try:
                    if "outcore-published" in os.readlink(descriptor):
                        inodes.add(os.stat(descriptor).st_ino)
                except FileNotFoundError:  # closed meanwhile
                    pass
            return inodes

        self.wait_until(lambda: len(seen()) >= count)

    def start_seen(self):
        """A scan that its watcher has seen, and its number."""
        watcher = self.start_scan("--report", self.page)
        self.wait_until_seen(watcher)
        with open(f"/proc/{watcher.pid}/task/{watcher.pid}/children", encoding="ascii") as file:
            return watcher, int(file.read())

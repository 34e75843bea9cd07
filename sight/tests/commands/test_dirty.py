"""What top and export tell of bytes that a program has written and not stored, by file."""

import json
import re
import sys

import programs

# Writes 7 pages of one file and 3 of another; each byte that it reads stores those of the first.
WRITER = """
import mmap, sys
maps = []
for name, pages in (("one", 7), ("two", 3)):
    with open(name, "r+b") as file:
        maps.append(mmap.mmap(file.fileno(), 0))
    for page in range(pages):
        maps[-1][page * 8192] = 65
print("written", flush=True)
while sys.stdin.read(1):
    maps[0].flush()
    print("flushed", flush=True)
"""


class Dirty(programs.SightTest):
    def start_writer(self):
        for name in ("one", "two"):
            (self.folder / name).write_bytes(b"\1" * (1 << 20))
        program = programs.subprocess.Popen(
            [programs.OUTCORE, "run", "--min-size", "4k", "--budget", "4M", "--buffer", "none",
             "--page", "4k", "-q", "--", sys.executable, "-c", WRITER], cwd=self.folder,
            env=self.environment, stdin=programs.subprocess.PIPE, stdout=programs.subprocess.PIPE,
            stderr=programs.subprocess.PIPE)
        self.addCleanup(self.end, program)
        self.assertEqual(program.stdout.readline(), b"written\n", program.poll())
        return program

    def look(self, program):
        """The process, and the dirty bytes of each of its files."""
        done = self.run_outcore("top", "--interval", "50ms", "--pid", program.pid, "--json")
        process, = json.loads(done.stdout)["processes"]
        if process["dirty_bytes"] is None:
            self.skipTest("this kernel does not tell")
        stores = process["runtimes"][0]["stores"]
        return process, {one["uri"].rsplit("/", 1)[1]: one["dirty_bytes"] for one in stores}

    def test_each_file_has_what_was_written_of_it_until_it_is_flushed(self):
        program = self.start_writer()
        process, each = self.look(program)
        self.assertEqual(each, {"one": 7 * 4096, "two": 3 * 4096})
        self.assertEqual(process["dirty_bytes"], 10 * 4096)
        program.stdin.write(b"x")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), b"flushed\n")
        process, each = self.look(program)
        self.assertEqual(each, {"one": 0, "two": 3 * 4096})
        self.assertEqual(process["dirty_bytes"], 3 * 4096)

    def test_the_page_and_the_export_have_a_figure_for_each_file(self):
        program = self.start_writer()
        self.look(program)
        page = self.run_outcore("top", "--once", "--interval", "50ms", "--pid", program.pid).stdout
        rows = [line.split() for line in page.decode().splitlines()]
        title, = (row for row in rows if "DIRTY" in row)
        for name, dirty in (("one", "28K"), ("two", "12K")):
            row, = (row for row in rows if row and row[0].endswith("/" + name))
            self.assertEqual(row[title.index("DIRTY")], dirty, page)
        text = self.run_outcore("export", "--pid", program.pid).stdout.decode()
        told = re.findall(r'(?m)^outcore_store_dirty_bytes\{.*/(one|two)"\} (\d+)$', text)
        self.assertEqual(dict(told), {"one": str(7 * 4096), "two": str(3 * 4096)})


if __name__ == "__main__":
    programs.unittest.main()

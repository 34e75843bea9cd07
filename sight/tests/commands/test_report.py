"""outcore report: a page of a record; and what is wrong with one, in one line."""

import fcntl
import json
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import termios
import unittest

import programs
from records import PAGE_BYTES_MAX, Elements, RecordTest, frame_of, record, runs_in


class Report(RecordTest):
    def test_a_record_of_a_program_that_was_killed_has_a_verdict_and_a_page(self):
        killed = record(ended="was ended by signal 9 (Killed)")
        for name in ("timeline", "sites", "sampled_faults", "tuner", "lost_events", "miss_curve"):
            del killed[name]
        path = self.write(killed)
        said = self.run_outcore("report", path, "--text").stdout.decode()
        self.assertIn("The program was ended by signal 9 (Killed):", said)
        self.assertIn("miss curve, which it writes at exit(), are not", said)
        run, = runs_in(self.page_of(path))
        self.assertEqual(run["ended"], killed["ended"])
        self.assertTrue(run["verdict"]["headline"])

    def test_why_no_place_is_known_is_told(self):
        def told(delivery="in-thread", **counted):
            counters = dict(record()["counters"], **counted)
            files = [dict(record()["files"][0], delivery=delivery, counters=counters)]
            path = self.write(record(counters=counters, files=files))
            run, = runs_in(self.page_of(path))
            why = run.get("why_no_sites", "")
            self.assertEqual(why in run["verdict"]["sentences"], why != "")
            return why
        self.assertIn("by messages, which do not show it. Set OUTCORE_DELIVERY=in-thread.",
                      told("messages"))
        self.assertIn("calls of the library brought the pages in", told(faults=0, call_waits=9))
        self.assertEqual(told(), "")

    def test_what_calls_waited_is_told_as_waiting(self):
        counters = {"faults": 0, "fills": 900, "read_bytes": 4096 * 900, "read_requests": 900,
                    "fault_ns": 0, "call_waits": 900, "call_wait_ns": 400_000_000}
        path = self.write(record(counters=counters))
        said = self.run_outcore("report", path, "--text").stdout.decode()
        self.assertIn("The store is what limits: 400.0 ms of waiting for pages in 1.00 s (40 %)",
                      said)
        self.assertIn("900 times a call waited for a page that was not in memory, 900 a second; ",
                      said)
        # With faults, too; then in one of an earlier version, which did not count it.
        path = self.write(record(counters=dict(counters, faults=5, fault_ns=100_000_000)))
        said = self.run_outcore("report", path, "--text").stdout.decode()
        self.assertIn("500.0 ms of waiting", said)
        self.assertIn("5 touches found their page absent, and 900 times a call waited for one, "
                      "905 a second", said)
        del counters["call_waits"], counters["call_wait_ns"]
        path = self.write(record(counters=counters))
        said = self.run_outcore("report", path, "--text").stdout.decode()
        self.assertIn("how long they waited is not counted", said)

    def test_the_page_of_a_run_has_all_that_it_needs(self):
        page = self.page_of(self.one_of_scan())
        for placeholder in ("@TITLE@", "@TEXT@", "/*@RUNS@*/", "/*@D3@*/"):
            self.assertNotIn(placeholder, page)
        self.assertLess(len(page.encode()), PAGE_BYTES_MAX)
        self.assertIsNone(re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page))
        self.assertIn("scan", re.search("<title>(.*?)</title>", page).group(1))
        run, = runs_in(page)
        self.assertIn("s of waiting for pages", run["verdict"]["headline"])
        self.assertGreaterEqual(len(run["verdict"]["sentences"]), 4)
        self.assertGreater(run["counters"]["faults"], 1000)

    def test_a_place_in_the_code_is_told_by_function_and_line(self):
        site = runs_in(self.page_of(self.one_of_scan()))[0]["sites"][0]
        self.assertEqual(site["function"], "touch_pages")
        self.assertTrue(site["file"].endswith("scan.c"), site)
        self.assertEqual(site["line"], programs.LINE + 1)
        self.assertGreater(site["share"], 0.8)

    def test_a_file_that_stays_with_the_kernel_is_named_with_the_reason(self):
        data = self.folder / "data"
        shutil.copy(self.shared / "data", data)
        with open(data, "r+b"):
            done = self.scan("--report", self.folder / "run.json", file=data)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = self.run_outcore("report", self.folder / "run.json", "--text").stdout.decode()
        self.assertIn("Nothing went through Outcore", said)
        self.assertRegex(said, rf"data \(8 MiB\) was left to the kernel: .* \({os.getpid()}\) has "
                               "it open for writing: name it by --map")
        left, = runs_in(self.page_of(self.folder / "run.json"))[0]["left_to_kernel"]
        self.assertEqual((left["path"], left["size_bytes"]), (str(data), 8 << 20))

    def test_edges_of_buckets_have_two_figures(self):
        for bucket, edge in ((8, "0.51 us"), (15, "66 us"), (18, "520 us"), (19, "1 ms"),
                             (27, "270 ms"), (31, "4.3 s")):
            latency = {"buckets": [0] * bucket + [1000]}
            said = self.run_outcore("report", self.write(record(latency=latency)), "--text").stdout
            self.assertIn(f"half of them waited less than {edge}, one", said.decode())

    def test_the_file_with_the_most_pages_is_told_of_all_or_of_how_many(self):
        one = record()["files"][0]
        other = dict(one, uri="/other", counters=dict(one["counters"], fills=100))
        for files, sentence in (
                ([one], "All of the pages that came in are of /data (8 MiB)."),
                ([dict(one, counters=dict(one["counters"], fills=800)), other],
                 "89 % of the pages that came in are of /data (8 MiB), more than of any other of "
                 "2 files.")):
            said = self.run_outcore("report", self.write(record(files=files)), "--text").stdout
            self.assertIn(sentence, said.decode())

    def next_of(self, **changes):
        """What the report of a record says to try next."""
        said = self.run_outcore("report", self.write(record(**changes)), "--text").stdout.decode()
        return [line.split(": ", 1)[1] for line in said.splitlines() if "next: " in line]

    def test_the_next_command_is_the_users_own(self):
        typed = ["outcore run", "--budget 4M", "--min-size 1M", "-q", "-- sh -c './scan \"$1\"'"]
        program = {"command": "scan data", "arguments": ["./scan", "a b"], "pid": 7, "seconds": 1.0}
        of_run = dict(program, run_command=typed)
        whole = {"budget": "OUTCORE_BUDGET"}
        settings = {"budget": "4 MiB", "keepers": "1"}
        for changes, expected in (
                ({"program": of_run, "sources": whole},
                 "outcore run --budget 8M --min-size 1M -q -- sh -c './scan \"$1\"'"),
                ({"program": of_run, "sources": {"budget": "the program"}},
                 "in the program: budget = 8M"),
                ({"program": program, "sources": {}}, "OUTCORE_BUDGET=8M ./scan 'a b'"),
                ({"program": program, "sources": dict(whole, keepers="OUTCORE_KEEPERS")},
                 "OUTCORE_BUDGET=8M OUTCORE_KEEPERS=1 ./scan 'a b'"),
                ({"program": program, "sources": {"budget": "the program"}},
                 "in the program: budget = 8M"),
                ({"program": program}, "outcore run --budget 8M -- ./scan 'a b'")):
            self.assertEqual(self.next_of(settings=settings, **changes), [expected])

    def test_what_somebody_wrote_into_a_record_is_no_command_to_type(self):
        own = "outcore run --budget 8M -- ./scan 'a b'"
        for forged in (
                [5, None], ["outcore run", None], ["outcore run"], ["rm -r /", "-- ./scan"],
                ["outcore run", "--page 4k\nrm", "-- ./scan"], ["outcore run", "", "-- ./scan"],
                ["outcore run; rm", "-- ./scan"], ["outcore run", "-- ./scan; rm -r /"],
                ["outcore run", "-- $(rm)"], ["outcore run", "-q", "./scan"],
                ["outcore run", "-- 'scan"], ["'rm' outcore run", "-- ./scan"],
                ["/x/notoutcore run", "-- ./scan"], ["outcore run", "-- a\u001b[31m"], "text", 5):
            program = {"command": "c", "arguments": ["./scan", "a b"], "pid": 7, "seconds": 1.0,
                       "run_command": forged}
            self.assertEqual(self.next_of(program=program), [own], forged)
        for typed in (["/a/outcore run", "--learn=x", "-- ./scan $'a\\047;b' '\\'' 'it'\\''s; rm'"],
                      ["'/a b/outcore' run", "-- ./scan"], ["outcore run", "…"]):
            program = {"command": "c", "pid": 7, "seconds": 1.0, "run_command": typed}
            self.assertEqual(self.next_of(program=program),
                             [" ".join([*typed[:-1], "--budget 8M", typed[-1]])])
        program = {"command": "c", "arguments": [5, "x"], "pid": 7, "seconds": 1.0}
        self.assertEqual(self.next_of(program=program), ["outcore run --budget 8M -- PROGRAM"])

    def test_what_is_no_file_is_none_that_stays_with_the_kernel(self):
        file = {"path": "/kept", "reason": "it is small", "size_bytes": 5}
        run, = runs_in(self.page_of(self.write(record(
            left_to_kernel=[5, None, {}, {"path": ""}, {"path": 5}, "x", file, {"reason": "x"}]))))
        self.assertEqual(run["left_to_kernel"], [file])

    def test_a_budget_that_the_machine_has_not_is_not_named(self):
        environment = dict(record()["environment"], memory_bytes=7 << 20)
        self.assertEqual(self.next_of(environment=environment), [])
        self.assertEqual(self.next_of(settings={"budget": "auto"}), [])

    def test_the_next_command_of_a_run_works_as_it_stands(self):
        done = self.scan("--report", self.folder / "x.html")
        said = [line for line in done.stderr.decode().splitlines() if line.startswith("  next: ")]
        command = said[0].split(": ", 1)[1]
        self.assertIn("--min-size 4k --budget ", command)
        again = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment,
                               stdin=subprocess.DEVNULL, timeout=programs.WAIT_S,
                               capture_output=True, check=False)
        self.assertEqual((again.returncode, again.stdout), (0, b"touched\n"), again.stderr)
        self.assertIn(b"the report: ", again.stderr)

    def test_instructions_of_one_line_are_one_place(self):
        path = self.one_of_scan()
        made = json.loads(path.read_text())
        site = made["sites"][0]
        made["sites"] = [
            dict(site, faults=1, share=0.1, stalled_s=1, pattern={"random": 1}),
            dict(site, faults=3, share=0.3, stalled_s=2, pattern={"sequential": 1}),
            dict(site, faults=2, share=0.2, stalled_s=0, pattern=5, file_uri="another")]
        path.write_text(json.dumps(made) + "\n")
        one, other = runs_in(self.page_of(path))[0]["sites"]
        self.assertEqual((one["faults"], one["stalled_s"]), (4, 3))
        self.assertAlmostEqual(one["share"], 0.4)
        self.assertEqual(one["pattern"], {"sequential": 0.75, "strided": 0, "random": 0.25})
        self.assertEqual((other["faults"], other["file_uri"]), (2, "another"))

    def test_without_symbols_a_place_is_module_and_offset(self):
        bare = self.folder / "bare"
        subprocess.run(["strip", "-s", "-o", bare, self.shared / "scan"], check=True)
        path = self.one_of_scan(scan=bare)
        site = runs_in(self.page_of(path))[0]["sites"][0]
        self.assertIsNone(site["function"])
        self.assertIsNone(site["file"])
        self.assertEqual(pathlib.Path(site["module"]), bare)
        text = self.run_outcore("report", path, "--text").stdout.decode()
        self.assertRegex(text, rf"{bare}\+0x[0-9a-f]+ \(no symbols: compile with -g\), ")

    def test_a_module_that_is_gone_or_no_code_stays_a_number(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        sites = [{"module": str(module), "offset": 5, "faults": 1, "share": 0.1, "stalled_s": 0,
                  "pattern": {}} for module in (self.folder / "gone", self.folder, "/dev/zero",
                                                fifo, self.shared / "data", "", "\x00")]
        for site in runs_in(self.page_of(self.write(record(sites=sites))))[0]["sites"]:
            self.assertIsNone(site["function"], site)

    def test_strings_of_a_record_are_data_of_the_page(self):
        usual = self.page_of(self.write(record()))
        hostile = ['</script><script>alert(1)</script>', '<!--<script>', "@TITLE@ /*@RUNS@*/",
                   "<!--@TEXT@-->", "</noscript><img src=x>",
                   "/*@D3@*/", '"><img src=x onerror=alert(1)>', "a\u2028b\x1b[31m\nc",
                   "</SCRIPT >", "é" * 100, "\\u003c/script"]
        for text in hostile:
            made = record(program={"command": text, "pid": 1, "seconds": 1.0, "started": text})
            made["files"][0]["uri"] = text
            made["settings"] = {text: text, "policy": text}
            made["sites"] = [{"module": text, "offset": 1, "faults": 1, "share": 1,
                              "stalled_s": 1, "pattern": {"random": 1}, "file_uri": text}]
            page = self.page_of(self.write(made))
            run, = runs_in(page)
            self.assertEqual(run["files"][0]["uri"], text)
            self.assertEqual(run["program"]["command"], text)
            # The script that the strings stand in ends where it did, and nothing else has changed.
            self.assertEqual(frame_of(page), frame_of(usual), text)
            title = re.search("<title>(.*?)</title>", page, re.DOTALL).group(1)
            self.assertNotIn("<", title)
            self.assertEqual(Elements(page).names, Elements(usual).names, text)
            self.assertNotIn("\ufffd", title)

    def test_lines_for_people_are_one_line_each(self):
        odd = "a\nb\x1b[31m\r\tc"
        made = record(program={"command": odd, "pid": 1, "seconds": 1.0})
        made["files"][0]["uri"] = odd
        made["settings"]["policy"] = odd
        made["sites"] = [{"module": odd, "offset": 1, "faults": 1, "share": 1, "stalled_s": 1,
                          "pattern": {"random": 1}, "file_uri": odd}]
        plain = self.run_outcore("report", self.write(record(sites=[dict(
            made["sites"][0], module="m")])), "--text").stdout
        done = self.run_outcore("report", self.write(made), "--text")
        self.assertNotIn(b"\x1b", done.stdout)
        self.assertEqual(done.stdout.count(b"\n"), plain.count(b"\n"), done.stdout)

    def test_a_record_of_other_types_is_a_page_all_the_same(self):
        usual = record()
        for name in list(usual)[2:]:
            for other in (None, 5, -1.5, "text", [], {}, [[]], [5], {"x": [1]}, 1e308, True):
                path = self.write(dict(usual, **{name: other}))
                # Without its time it is none: all that is told would be of no time.
                self.run_outcore("report", path, "--text", status=1 if name == "program" else 0)
            if name != "program":
                self.page_of(path)
        self.page_of(self.write({"format": "outcore-run", "version": 1, "program": {"seconds": 1}}))

    def test_bytes_that_are_no_text_are_replaced(self):
        path = self.folder / "run.json"
        path.write_bytes(json.dumps(record()).replace("/data", "/d@ta").encode()
                         .replace(b"@", b"\xff"))
        done = subprocess.run([programs.OUTCORE, "report", path, "-o", self.folder / "page.html"],
                              capture_output=True, env=self.environment, check=False)
        self.assertIn(done.returncode, (0, 1))
        if done.returncode == 0:
            runs_in((self.folder / "page.html").read_text(encoding="utf-8"))

    def test_what_is_no_record_is_told_in_one_line(self):
        whole = json.dumps(record())
        for text, why in (("", "it is empty"), ("\n\n", "it is empty"),
                          (whole[:len(whole) // 2], "is cut short"),
                          (whole[:-1], "is cut short"),
                          (whole[:9] + "x" + whole[9:],
                           ":1 is damaged: it cannot be read from byte 10 on"),
                          (whole[:-1] + "]", f"cannot be read from byte {len(whole)} on"),
                          (whole + "}", f"cannot be read from byte {len(whole) + 1} on"),
                          (whole[:9] + "\n" + whole[9:], ":1 is cut short"),
                          ('{"x":' * 100 + "1" + "}" * 100, "is damaged: it is nested deeper"),
                          ("{}", "is not a record"), ("[1]", "is not a record"),
                          ("hello", "is not a record"),
                          ('{"format": "other"}', "is not a record"),
                          ("[" * 100_000, "is not a record"),
                          (json.dumps(record(version=2)), "is of version 2"),
                          (json.dumps(record(version=None)), "is damaged: it has no version"),
                          (json.dumps(record(program={"pid": 7})), "is damaged: it has no elapsed"),
                          (json.dumps({"files": [], "not_taken": [], "processes": []}, indent=2),
                           "that is the table of --json: name the file of --report")):
            path = self.write(text) if text else self.write()
            status = 2 if "not a record" in why or "table" in why else 1
            done = self.run_outcore("report", path, "-o", self.folder / "page.html", status=status)
            self.assertIn(why, done.stderr.decode())
            self.assertRegex(done.stderr.decode(), "name the file|use a newer one|run the program")
            self.assertFalse((self.folder / "page.html").exists())

    def test_files_that_cannot_be_read_are_told_in_one_line(self):
        os.mkfifo(self.folder / "fifo")
        self.run_outcore("report", self.folder / "missing", status=1)
        for path in (self.folder, self.folder / "fifo", "/dev/null"):
            done = self.run_outcore("report", path, "-o", self.folder / "page.html", status=1)
            self.assertIn("not a regular file", done.stderr.decode())

    def test_a_page_that_cannot_be_written_is_told_in_one_line(self):
        path = self.write(record())
        for place in (self.folder / "missing" / "page.html", self.folder, "/dev/null/page.html"):
            done = self.run_outcore("report", path, "-o", place, status=1)
            self.assertIn(str(place), done.stderr.decode())
        self.assertEqual(sorted(os.listdir(self.folder)), ["run.json"])

    def test_a_page_that_is_too_large_for_the_limit_is_told_and_leaves_nothing(self):
        path = self.write(record())
        done = self.run_outcore(
            "report", path, status=1,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        self.assertIn("ulimit -f", done.stderr.decode())
        self.assertEqual(os.listdir(self.folder), ["run.json"])

    def test_text_and_json_are_not_both_printed(self):
        self.run_outcore("report", self.write(record()), "--text", "--json", status=2)

    def test_a_page_is_not_written_over_its_record(self):
        path = self.write(record())
        os.link(path, self.folder / "other.json")
        before = path.read_bytes()
        for place in (path, self.folder / "other.json"):
            done = self.run_outcore("report", path, "-o", place, status=2)
            self.assertIn("take the place of its record", done.stderr.decode())
        self.assertEqual(path.read_bytes(), before)

    def test_a_pipe_gets_all_of_the_page(self):
        path = self.write(record())
        whole = self.page_of(path)
        words = [programs.OUTCORE, "report", str(path), "-o", "/dev/stdout"]
        started = subprocess.Popen(words, env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.end, started)
        # Nobody reads before it is full.
        def waiting():
            return struct.unpack("i", fcntl.ioctl(started.stdout, termios.FIONREAD, bytes(4)))[0]
        while waiting() < 65536:
            self.assertIsNone(started.poll(), started.stderr)
        out, err = started.communicate(timeout=programs.WAIT_S)
        self.assertEqual((started.returncode, out.decode()), (0, whole), err)

    def test_a_title_ends_between_letters(self):
        name = "x" + "ä" * 100
        page = self.page_of(self.write(record(program={"command": name, "pid": 7, "seconds": 1.0})))
        self.assertIn("<title>x" + "ä" * 39 + " – Outcore</title>", page)

    def test_what_would_control_a_terminal_does_not_reach_it(self):
        path = self.write(record(program={"command": "a\x1b[2J\u009b31m\x7fb", "pid": 7,
                                          "seconds": 1.0}))
        said = self.run_outcore("report", path, "--text").stdout
        self.assertTrue(said.startswith(b"a [2J??31m b (7)\n"), said)

    def test_a_line_that_is_none_is_left_out(self):
        page_path = self.folder / "page.html"
        path = self.write(record(), json.dumps(record())[:100], record())
        done = self.run_outcore("report", path, "-o", page_path)
        self.assertIn(":2 is cut short", done.stderr.decode())
        self.assertEqual(len(runs_in(page_path.read_text())), 2)

    def test_the_page_lies_beside_its_record(self):
        self.run_outcore("report", self.write(record()))
        self.assertTrue((self.folder / "run.html").exists())
        self.write(record(), name="other")
        self.run_outcore("report", "other")
        self.assertTrue((self.folder / "other.html").exists())

    def test_json_is_the_records_with_their_verdicts(self):
        done = self.run_outcore("report", self.write(record(), record()), "--json")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[0]["verdict"]["limit"], "budget")


if __name__ == "__main__":
    unittest.main()

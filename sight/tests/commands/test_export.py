"""outcore export: each line is as Prometheus' text format has it, printed, served and in a file."""

import os
import re
import signal
import subprocess
import threading
import unittest
import urllib.error
import urllib.request

import programs

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"^({NAME})(?:\{{((?:{LABEL})(?:,{LABEL})*)\}})? "
                    r"(-?[0-9.]+(?:e[+-]?[0-9]+)?|[+-]?Inf|Na[Nn])$")
SUFFIXES = ("_bucket", "_sum", "_count")


def unescaped(text):
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)


class Format(unittest.TestCase):
    """What is common to all tests that read metrics."""

    def read(self, text):
        """{(name, labels): value}; fails at the first line that is not well-formed."""
        samples, types, helps = {}, {}, set()
        self.assertTrue(text == "" or text.endswith("\n"))
        for line in text.splitlines():
            if line.startswith("# HELP "):
                name = line.split(" ", 3)[2]
                self.assertNotIn(name, helps, "one HELP a family")
                helps.add(name)
                continue
            if line.startswith("# TYPE "):
                name, kind = line.split(" ")[2:]
                self.assertNotIn(name, types)
                self.assertIn(kind, ("counter", "gauge", "histogram", "summary"))
                types[name] = kind
                continue
            found = SAMPLE.match(line)
            self.assertIsNotNone(found, line)
            name = found[1]
            base = next((name[:-len(end)] for end in SUFFIXES
                         if name.endswith(end) and
                         types.get(name[:-len(end)]) in ("histogram", "summary")), name)
            self.assertEqual(list(types)[-1], base, "samples follow their TYPE")
            if types[base] == "counter":
                self.assertTrue(name.endswith("_total"), name)
            labels = tuple((key, unescaped(value)) for key, value in
                           re.findall(r'([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"', found[2] or ""))
            self.assertEqual(len(dict(labels)), len(labels), line)
            self.assertNotIn((name, labels), samples, "each once")
            samples[name, labels] = float(found[3])
        self.assertEqual(helps, set(types))
        return samples


def total(samples, name, **labels):
    return sum(value for (of, with_labels), value in samples.items()
               if of == name and labels.items() <= dict(with_labels).items())


class Export(programs.SightTest, Format):
    def export(self, *words):
        return self.read(self.run_outcore("export", *words).stdout.decode())

    def test_every_line_is_well_formed_and_tells_of_the_program(self):
        program = self.start_scan()
        samples = self.export("--pid", program.pid)
        pid = str(program.pid)
        self.assertEqual({dict(labels)["pid"] for _, labels in samples}, {pid})
        self.assertEqual({dict(labels)["command"] for _, labels in samples}, {"scan"})
        self.assertGreater(total(samples, "outcore_faults_total"), 1000)
        self.assertEqual(total(samples, "outcore_budget_bytes"), 4 << 20)
        store = [dict(labels)["store"] for name, labels in samples if "store" in dict(labels)]
        self.assertEqual(set(store), {str(self.shared / "data")})

    def test_the_histogram_is_cumulative_and_has_its_count_and_sum(self):
        samples = self.export("--pid", self.start_scan().pid)
        name = "outcore_fault_duration_seconds"
        buckets = [(float(dict(labels)["le"]), value) for (of, labels), value in samples.items()
                   if of == name + "_bucket"]
        self.assertEqual(buckets, sorted(buckets))
        self.assertEqual([n for _, n in buckets], sorted(n for _, n in buckets))
        self.assertEqual(buckets[-1][0], float("inf"))
        self.assertEqual(buckets[-1][1], total(samples, name + "_count"))
        self.assertGreater(total(samples, name + "_count"), 1000)
        self.assertGreater(total(samples, name + "_sum"), 0)

    def test_counters_only_grow(self):
        program = self.start_scan()
        before = self.export("--pid", program.pid)
        self.touch_again(program)
        after = self.export("--pid", program.pid)
        for (name, labels), value in before.items():
            if name.endswith(("_total", "_bucket", "_count", "_sum")):
                self.assertGreaterEqual(after[name, labels], value, name)
        self.assertGreater(total(after, "outcore_faults_total"),
                           total(before, "outcore_faults_total"))

    def test_names_of_files_are_labels_whatever_they_are(self):
        for name in ('a"b\\c\nd', "é\u20ac", "{}", "a,b=c", "x" * 200):
            odd = self.folder / name
            os.link(self.shared / "data", odd)
            program = self.start_scan(file=odd)
            samples = self.export("--pid", program.pid)
            stores = {dict(labels)["store"] for _, labels in samples if "store" in dict(labels)}
            self.assertEqual(stores, {str(odd)})
            self.end(program)

    def test_a_name_that_is_no_text_is_told_as_text(self):
        odd = os.path.join(os.fsencode(self.folder), b"a\xff\xc3")
        os.link(self.shared / "data", odd)
        program = self.start_scan(file=os.fsdecode(odd))
        done = self.run_outcore("export", "--pid", program.pid)
        self.read(done.stdout.decode("utf-8"))

    def test_two_programs_are_two_series(self):
        one, other = self.start_scan(), self.start_scan()
        samples = self.export()
        pids = {dict(labels)["pid"] for _, labels in samples}
        self.assertLessEqual({str(one.pid), str(other.pid)}, pids)

    def test_open_metrics_end_where_they_say_and_name_counters_without_total(self):
        program = self.start_scan()
        text = self.run_outcore("export", "--pid", program.pid, "--format",
                                "openmetrics").stdout.decode()
        self.assertTrue(text.endswith("\n# EOF\n"))
        self.assertIn("# TYPE outcore_faults counter\n", text)
        self.assertNotRegex(text, r"(?m)^# (TYPE|HELP) \S+_total ")
        self.assertRegex(text, r"(?m)^outcore_faults_total\{")

    def test_wrong_words_are_told_in_one_line(self):
        for words, status in ((["--pid", os.getpid()], 1), (["--pid", "0"], 2),
                              (["--pid", "x"], 1), (["--metrics", "127.0.0.1:x"], 2),
                              (["--metrics", "a.b:99999"], 2),
                              (["--format", "xml"], 2),
                              (["--format", "openmetrics", "--metrics", "0"], 2),
                              (["--metrics", "99999"], 2),
                              (["--metrics", ""], 2), (["--metrics", "here"], 2),
                              (["--metrics", "missing/x.prom"], 1), (["--metrics", "./"], 1),
                              (["--metrics", "/dev/null/x.prom"], 1),
                              (["--metrics", "1.2.3.4:9464"], 1), (["--interval", "x"], 2),
                              (["--metrics", "x.prom", "--interval", "-1"], 2),
                              (["--metrics", "x.prom", "--interval", "0"], 2)):
            with self.subTest(words=words):
                self.run_outcore("export", *words, status=status)
        self.assertEqual(os.listdir(self.folder), [])


class Server(programs.SightTest, Format):
    def serve(self, *words, place="0"):
        """Starts it, and returns the process and where it serves, or writes."""
        server = subprocess.Popen([programs.OUTCORE, "export", "--metrics", place,
                                   *map(str, words)], stderr=subprocess.PIPE, cwd=self.folder,
                                  env=self.environment)
        self.addCleanup(self.end_server, server)
        said = server.stderr.readline().decode()
        self.assertIn("outcore: metrics at ", said)
        return server, said.split()[-1]

    @staticmethod
    def end_server(server, by=signal.SIGINT):
        if server.returncode is None:
            server.send_signal(by)
            try:
                server.wait(programs.WAIT_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        server.stderr.close()

    def test_a_file_has_the_form_that_was_asked_for(self):
        _, place = self.serve("--format", "openmetrics", place="x.prom")
        self.assertTrue((self.folder / place).read_text().endswith("# EOF\n"))

    def get(self, url):
        with urllib.request.urlopen(url, timeout=programs.WAIT_S) as answer:
            self.assertTrue(answer.headers["Content-Type"].startswith("text/plain"))
            return self.read(answer.read().decode())

    def test_metrics_are_served_on_a_port_of_the_systems_choice(self):
        program = self.start_scan()
        server, url = self.serve("--pid", program.pid)
        self.assertRegex(url, r"^http://127\.0\.0\.1:[1-9][0-9]*/metrics$")
        before = self.get(url)
        self.touch_again(program)
        self.assertGreater(total(self.get(url), "outcore_faults_total"),
                           total(before, "outcore_faults_total"))
        with self.assertRaises(urllib.error.HTTPError):
            urllib.request.urlopen(url.replace("metrics", "other"), timeout=programs.WAIT_S)
        self.end(program)
        self.assertEqual(total(self.get(url), "outcore_faults_total"), 0)
        self.end_server(server)
        self.assertEqual(server.returncode, 0)

    def test_many_may_ask_at_a_time(self):
        _, url = self.serve("--pid", self.start_scan().pid)
        counts = []
        askers = [threading.Thread(target=lambda: counts.append(
            total(self.get(url), "outcore_faults_total"))) for _ in range(8)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        self.assertEqual(len(counts), 8)
        self.assertGreater(min(counts), 0)

    def test_a_port_that_is_taken_is_told_in_one_line(self):
        _, url = self.serve()
        port = re.search(":([0-9]+)/", url)[1]
        done = self.run_outcore("export", "--metrics", port, status=1)
        self.assertIn(port, done.stderr.decode())

    def test_a_file_is_always_whole_and_becomes_fresh(self):
        program = self.start_scan()
        server, place = self.serve("--pid", program.pid, "--interval", "0.1", place="./m.prom")
        self.assertEqual(place, "./m.prom")
        path = self.folder / "m.prom"
        first = self.read(path.read_text())
        self.assertGreater(total(first, "outcore_faults_total"), 1000)
        self.touch_again(program)
        self.wait_until(lambda: total(self.read(path.read_text()), "outcore_faults_total") >
                        total(first, "outcore_faults_total"))
        last = self.read(path.read_text())
        self.assertEqual({name for name, _ in last}, {name for name, _ in first})
        self.end_server(server, signal.SIGTERM)
        self.assertEqual(server.returncode, 0)
        self.assertEqual(os.listdir(self.folder), ["m.prom"], "nothing else is left")


if __name__ == "__main__":
    unittest.main()

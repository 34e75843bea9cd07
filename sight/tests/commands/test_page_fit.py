"""The page of a run stays below 1 MB, and tells without scripts what it says."""

import json
import re
import unittest

from records import PAGE_BYTES_MAX, Elements, RecordTest, full_map, numbers_in, record, runs_in


class PageFit(RecordTest):
    def test_a_page_without_scripts_tells_the_verdict_and_the_figures(self):
        path = self.write(record(), record(program={"command": "other", "pid": 8, "seconds": 2.0}))
        page = self.page_of(path)
        text = Elements(page).text
        for run in runs_in(page):
            for sentence in [run["verdict"]["headline"], *run["verdict"]["sentences"],
                             *run["verdict"]["next"], run["program"]["command"]]:
                self.assertIn(sentence, text)
        for figure in ("500.0 ms", "3.5 MiB", "budget", "4 MiB"):  # waited; read; of it
            self.assertIn(figure, text)
        many = self.page_of(self.write(*[record()] * 11))
        self.assertIn("3 more processes waited less", Elements(many).text)

    def test_a_page_without_scripts_counts_what_calls_waited_and_tells_of_its_buffer(self):
        waited = {"faults": 0, "fault_ns": 0, "call_waits": 900, "call_wait_ns": 400_000_000}
        made = record(buffer={"name": "shared", "limit_bytes": 32 << 20, "used_bytes": 1 << 20,
                              "used_bytes_max": 24 << 20})
        made["counters"] = dict(made["counters"], **waited)
        made["files"][0]["counters"] = made["counters"]
        text = Elements(self.page_of(self.write(made))).text
        for figure in (r"waiting for pages, of all threads\s+400.0 ms", r"faults\s+0\s",
                       r"pages that calls waited for\s+900\s",
                       r"half of the waits took less than",
                       r"buffer, for all its processes\s+32 MiB", r"at most in use\s+24 MiB"):
            self.assertRegex(text, figure)
        self.assertNotIn("budget", text.split("recorded for")[1])
        # Of two processes the one whose calls waited longer is the first.
        less = record(program={"command": "less", "pid": 8, "seconds": 1.0})
        less["counters"] = dict(less["counters"], fault_ns=300_000_000)
        text = Elements(self.page_of(self.write(less, made))).text
        self.assertLess(text.index("scan data"), text.index("less"))

    def test_what_calls_waited_for_longest_is_what_a_page_keeps(self):
        made = record()
        counters = dict(made["files"][0]["counters"], fault_ns=0)
        made["files"] = [dict(made["files"][0], uri=f"/{'long name ' * 60}{i}",
                              counters=dict(counters, call_wait_ns=1000 * (i % 500)))
                         for i in range(1024)]
        run, = self.small_page_of(made)
        self.assertGreater(run["left_out"]["files"], 0)
        kept = {int(re.search(r"(\d+)$", file["uri"])[1]) for file in run["files"]}
        self.assertIn(499, kept)
        self.assertNotIn(500, kept)

    def test_a_page_of_long_names_is_small(self):
        long = "f" * 20_000
        site = {"module": "/" + long, "offset": 1, "faults": 1, "share": 0.01, "stalled_s": 0,
                "pattern": {"random": 1}, "file_uri": "/" + long}
        made = record(sites=[dict(site, offset=i) for i in range(64)],
                      settings={"policy": long, "learn": "<" * 900_000},
                      left_to_kernel=[{"path": "/" + long, "reason": long, "size_bytes": 1}])
        made["files"][0]["uri"] = "/" + "p" * 900_000
        run, = self.small_page_of(made)
        self.assertEqual(len(run["sites"]), 64)
        self.assertLess(max(len(site["module"]) for site in run["sites"]), 310)
        self.assertTrue(run["files"][0]["uri"].startswith("/ppp"))
        # A command that was cut would be another one.
        made["program"]["arguments"] = ["rm", "a" * 100_000]
        run, = self.small_page_of(made)
        self.assertEqual([next_ for next_ in run["verdict"]["next"] if "…" in next_], [])

    def test_places_are_left_out_before_files_are(self):
        name = "<" * 290
        sites = [{"module": name, "offset": i, "faults": 1, "share": 0, "stalled_s": 0,
                  "pattern": {}, "file_uri": name} for i in range(400)]
        run, = self.small_page_of(record(sites=sites))
        self.assertEqual(run["sites"], [])
        self.assertIn("left out", run["why_no_sites"])
        self.assertEqual(run["left_out"]["files"], 0)
        run, = self.small_page_of(record(tuner=[{"at_s": 1.0, "what": name}] * 4000))
        self.assertEqual(len(run["files"]), 1)

    def test_a_page_of_many_files_is_small_and_tells_what_it_left_out(self):
        made = record()
        file = made["files"][0]
        made["files"] = [dict(file, uri=f"/data-{i}", heat=full_map(), counters=dict(
            file["counters"], fault_ns=1000 * i)) for i in range(48)]
        run, = self.small_page_of(made)
        self.assertEqual(run["left_out"], {"is_coarser": True, "files": 0, "touched_bytes": 0})
        self.assertEqual(len(run["files"]), 48)
        # What waited most is as fine as anything, and cells are added up.
        fine = {f["uri"]: f["heat"]["columns"] for f in run["files"]}
        self.assertEqual(fine["/data-47"], max(fine.values()))
        self.assertGreaterEqual(min(fine.values()), 15)
        for file in run["files"]:
            heat = file["heat"]
            for kind in ("fills", "evictions", "refaults"):
                cells = [n for cell in heat[kind] for n in numbers_in(cell)]
                self.assertEqual(sum(cells), sum(full_map()[kind]))
                self.assertLessEqual(len(cells), heat["columns"] * heat["rows"])
            self.assertEqual((heat["seconds"], heat["bytes"]), (12.0, 64 * 65536))

    def test_a_page_of_many_processes_is_small_and_tells_what_it_left_out(self):
        made = record(timeline={"step_s": 0.1, **{name: [0.123456789] * 240 for name in (
            "stalled_s", "fills", "read_bytes", "used_bytes")}})
        made["files"] = [dict(made["files"][0], uri=f"/data-{i}", heat=full_map(20, 16))
                         for i in range(3)]
        runs = []
        for i in range(400):
            counters = dict(made["counters"], fault_ns=1_000_000 * i)
            runs.append(dict(made, counters=counters,
                             program={"command": "scan", "pid": i + 1, "seconds": 1.0}))
        kept = self.small_page_of(*runs)
        self.assertLess(len(kept), 400)
        self.assertEqual(kept[-1]["program"]["pid"], 400, "who waited longest is there")
        all_ = json.loads(re.search("id=\"runs\">(.*?)</script>", self.page, re.DOTALL).group(1))
        self.assertEqual(all_["runs_left_out"], 400 - len(kept))
        for run in kept:
            self.assertEqual(len(run["files"]) + run["left_out"]["files"], 3)
            line = run["timeline"]
            self.assertAlmostEqual(line["step_s"] * len(line["fills"]), 24.0)
            self.assertAlmostEqual(sum(line["fills"]), 0.123456789 * 240)
            self.assertAlmostEqual(line["used_bytes"][-1], 0.123456789)

    def test_a_page_of_as_many_files_as_are_recorded_is_small(self):
        made = record()
        made["files"] = [dict(made["files"][0], uri=f"/data/{'long name ' * 60}{i}")
                         for i in range(1024)]
        made["files"][5]["heat"] = {"columns": 5000, "rows": "many"}
        run, = self.small_page_of(made)
        left = run["left_out"]
        self.assertGreater(left["files"], 0)
        self.assertEqual(len(run["files"]) + left["files"], 1024)
        self.assertEqual(left["touched_bytes"], left["files"] * 4096 * 400)

    def small_page_of(self, *records):
        self.page = self.page_of(self.write(*records))
        self.assertLess(len(self.page.encode()), PAGE_BYTES_MAX)
        return runs_in(self.page)


if __name__ == "__main__":
    unittest.main()

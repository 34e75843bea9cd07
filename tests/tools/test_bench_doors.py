"""bench-doors: routers of models prefer experts as is said, and the rows of llama.cpp have them."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "doors"), str(ROOT / "bench")]
import llama_router  # noqa: E402
import page  # noqa: E402

LAYERS, EXPERTS, TOKENS, EXPERT_WIDTH = 8, 32, 256, 128


def python_with_numpy():
    """This one, or one of those of the tests of programs and of the package."""
    folders = [ROOT / "build", pathlib.Path(os.environ.get("OUTCORE_TEST_BUILD_DIR", ROOT))]
    found = [sys.executable, *(folder / place / "bin" / "python" for folder in folders
                               for place in ("programs-venv", "python/venv"))]
    for python in found:
        if pathlib.Path(python).exists() and subprocess.run(
                [python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
            return python
    return None


PYTHON = python_with_numpy()


def forward(router):
    """What llama_forward.py says of a model with narrow experts."""
    done = subprocess.run(
        [PYTHON, "-B", ROOT / "tests/tools/llama_forward.py",
         *map(str, (LAYERS, EXPERTS, router, TOKENS, EXPERT_WIDTH))],
        capture_output=True, text=True, check=False, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Preferences(unittest.TestCase):
    def counts(self, experts, tokens):
        """By rank, how many tokens take an expert whose part of a logit is drawn."""
        drawn, counts = random.Random(3), [0] * experts
        preferences = llama_router.preferences(experts)
        for _ in range(tokens):
            logits = [preference + drawn.gauss(0, 1) for preference in preferences]
            for expert in sorted(range(experts), key=lambda e: -logits[e])[
                    :llama_router.EXPERTS_USED]:
                counts[expert] += 1
        return counts

    def test_choices_follow_zipfs_law(self):
        tokens = 8000
        for share, count in zip(llama_router.shares(EXPERTS), self.counts(EXPERTS, tokens)):
            self.assertLess(abs(count / tokens - share), 0.02)
            self.assertLess(abs(count / tokens / share - 1), 0.2)

    def test_an_expert_that_all_would_take_can_be_passed_by(self):
        self.assertEqual(self.counts(4, 10), [10] * 4)
        self.assertLess(self.counts(8, 4000)[0], 4000)


@unittest.skipUnless(PYTHON, "needs NumPy: of build/programs-venv or build/python/venv")
class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.even, cls.zipf = forward("even"), forward("zipf")

    def test_an_eighth_of_the_experts_gets_half_of_the_choices_in_every_layer(self):
        self.assertEqual(len(self.zipf["counts"]), LAYERS)
        for counts in self.zipf["counts"]:
            popular = sum(sorted(counts)[-EXPERTS // 8:])
            self.assertGreater(popular, 0.45 * sum(counts))
            self.assertLess(popular, 0.6 * sum(counts))

    def test_every_expert_is_chosen_in_every_layer(self):
        for counts in self.zipf["counts"]:
            self.assertEqual(sum(counts), llama_router.EXPERTS_USED * TOKENS)
            self.assertGreater(min(counts), 0)

    def test_other_layers_prefer_others(self):
        most = [tuple(sorted(range(EXPERTS), key=lambda e: -counts[e])[:EXPERTS // 8])
                for counts in self.zipf["counts"]]
        self.assertEqual(len(set(most)), LAYERS)

    def test_all_weights_but_those_that_prefer_are_an_even_models(self):
        changed = {name.split(".")[-1] for name, found in self.zipf["hashes"].items()
                   if found != self.even["hashes"][name]}
        self.assertEqual(changed, {"token_embd", "attn_output", "ffn_gate_inp", "ffn_down_exps"})

    def test_an_even_model_stays_the_one_that_was_measured(self):
        self.assertEqual(self.even["hash"],
                         "498824339b7d9a7ad40dd05fd871dabd8e9ce99d3628206a724b9a609dbf7b18")


class Rows(unittest.TestCase):
    def test_both_kinds_of_router_have_a_row_of_a_prompt_and_of_what_follows(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "bench/doors/table.py", "--list"],
                              capture_output=True, text=True, check=True)
        titles = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
        for name in ("llama-prefill", "llama-decode"):
            self.assertIn("whose router prefers some experts", titles[f"{name}-zipf"])
            self.assertNotIn("prefers", titles[name])


def run(row, memory, rate=100.0):
    return {"row": row, "memory": memory, "rate": rate, "seconds": 1000.0 / rate, "unit": "x/s",
            "stopped": rate == 0, "data_bytes": 2**28, "budget_bytes": 2**26, "peak_bytes": 1,
            "limit_bytes": 2, "rss_bytes": 3, "device": "loop0", "fills": 7, "is_quick": True}


def all_runs():
    return [run(row, memory) for group in page.GROUPS for row in group.rows
            for memory in page.MEMORIES]


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_every_row_of_a_database_and_of_a_model_has_its_place(self):
        self.assertEqual(len(page.WANTED), len(set(page.WANTED)))
        self.assertEqual({row.name for row in page.ROWS_TO_NAME} - set(page.WANTED), set())
        done = subprocess.run([sys.executable, "-B", ROOT / "bench/doors/table.py", "--papers",
                               "--list"], capture_output=True, text=True, check=True)
        self.assertEqual({line.split()[0] for line in done.stdout.splitlines()},
                         set(page.WANTED))
        self.assertEqual(len(page.GROUPS[0].rows), 12)

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot here")
    def test_a_ratio_is_over_the_better_and_over_mmap(self):
        rates = {"outcore": 80.0, "mmap": 20.0, "mmap-random": 160.0}
        runs = [run(one["row"], one["memory"], rates[one["memory"]]) for one in all_runs()]
        page.draw(runs, self.folder)
        text = (self.folder / "programs.md").read_text(encoding="utf-8")
        self.assertIn("| A zipf | 256 in 64 | 80 | 20 | 160 | 4.00 | 0.50 |  |", text)
        self.assertIn("| prefill | 256 in 64 | 80 | 20 | 160 | 4.00 | 0.50 | 2 asked: met over "
                      "mmap, **not** beside mmap-random |", text)
        self.assertEqual({path.name for path in self.folder.iterdir()},
                         {"programs.md", *(f"programs-{group.name}.png" for group in page.GROUPS)})

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot here")
    def test_a_run_that_was_stopped_has_no_rate(self):
        runs = [run(one["row"], one["memory"]) for one in all_runs()]
        stopped = {**run("faiss", "mmap"), "stopped": True, "rate": 0, "seconds": 180.0}
        runs = [stopped if (r["row"], r["memory"]) == ("faiss", "mmap") else r for r in runs]
        page.draw(runs, self.folder)
        text = (self.folder / "programs.md").read_text(encoding="utf-8")
        self.assertIn("| faiss | 256 in 64 | 100 | stopped | 100 |  | 1.00 | 0.95 asked: met |",
                      text)
        runs = [{**r, "stopped": True, "rate": 0} if (r["row"], r["memory"]) ==
                ("faiss", "outcore") else r for r in runs]
        page.draw(runs, self.folder)
        text = (self.folder / "programs.md").read_text(encoding="utf-8")
        self.assertIn("| faiss | 256 in 64 | stopped | stopped | 100 |  |  | 0.95 asked: "
                      "**not met** |", text)

    def test_the_page_stays_unless_all_rows_were_measured(self):
        page.draw([one for one in all_runs() if one["row"] != "faiss"], self.folder)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_row_that_is_measured_again_replaces_its_runs_alone(self):
        path = self.folder / "programs.json"
        page.merged(path, all_runs())
        again = [run("faiss", memory, 7.0) for memory in page.MEMORIES]
        kept = page.merged(path, [*again, run("start", "outcore")])
        self.assertEqual([r["rate"] for r in kept if r["row"] == "faiss"], [7.0] * 3)
        self.assertEqual(len(kept), len(all_runs()))
        self.assertNotIn("fills", kept[0])

    def test_a_row_of_another_size_or_with_a_memory_missing_replaces_nothing(self):
        path = self.folder / "programs.json"
        page.merged(path, all_runs())
        large = [{**run("faiss", memory, 7.0), "is_quick": False} for memory in page.MEMORIES]
        for again in (large, [run("faiss", "outcore", 7.0), run("faiss", "mmap", 7.0)]):
            kept = page.merged(path, again)
            self.assertEqual([r["rate"] for r in kept if r["row"] == "faiss"], [100.0] * 3)


if __name__ == "__main__":
    unittest.main()

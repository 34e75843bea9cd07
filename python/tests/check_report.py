"""outcore.report: what a part of a program did, as a record and as a page."""

import gc
import json
import subprocess
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import outcore


@pytest.fixture
def runtime():
    with outcore.Runtime(budget="4MiB") as made:
        yield made


@pytest.fixture
def array(runtime, tmp_path):
    np.arange(1 << 21, dtype="f8").tofile(tmp_path / "data")
    with runtime.open(tmp_path / "data", "r", dtype="f8") as made:
        yield made


def test_records_what_happens_within_the_block_alone(array, runtime):
    float(array[:1 << 18].sum())
    before = runtime.stats()
    with outcore.report(runtime=runtime) as seen:
        float(array.sum())
    after = runtime.stats()
    told = seen.record["counters"]
    for name in ("faults", "fills", "prefetch_fills", "read_bytes"):
        assert told[name] == after[name] - before[name], name
    assert told["fills"] + told["prefetch_fills"] > 0
    assert seen.record["files"][0]["uri"].endswith("data")
    for name in ("fills", "prefetch_fills"):
        assert seen.record["files"][0]["counters"][name] == told[name], name


def test_records_arrays_of_every_runtime_of_the_process(tmp_path):
    np.arange(1 << 21, dtype="f8").tofile(tmp_path / "data")
    with outcore.open(tmp_path / "data", dtype="f8", budget="4MiB") as before:
        with outcore.report() as seen:
            float(before.sum())
        assert seen.record["counters"]["read_bytes"] > 8 << 20
        assert [file["uri"] for file in seen.record["files"]] == [str(tmp_path / "data")]
        assert len(seen.records) == 1, "in the others nothing happened"


def test_records_arrays_that_are_opened_and_closed_within_the_block(tmp_path):
    np.arange(1 << 21, dtype="f8").tofile(tmp_path / "data")
    with outcore.report(tmp_path / "run.json") as seen:
        with outcore.open(tmp_path / "data", dtype="f8", budget="4MiB") as closed:
            float(closed.sum())
        left_open = outcore.open(tmp_path / "data", dtype="f8", budget="5MiB")
        float(left_open[5])
        dropped = outcore.Runtime(budget="6MiB").open(tmp_path / "data", dtype="f8")
        float(dropped[5])
        del dropped
    left_open.close()
    told = [json.loads(line) for line in (tmp_path / "run.json").read_text().splitlines()]
    waits = [one["counters"]["fault_ns"] + one["counters"]["call_wait_ns"] for one in told]
    assert waits == sorted(waits, reverse=True) and seen.record == told[0]
    assert {one["gauges"]["budget_bytes"] >> 20 for one in told} == {4, 5, 6}
    assert told == seen.records


@pytest.mark.filterwarnings("ignore:unclosed outcore array:ResourceWarning")
def test_runtimes_that_are_dropped_do_not_stay_until_the_block_ends(tmp_path):
    np.arange(1 << 16, dtype="f8").tofile(tmp_path / "data")
    cores = []
    with outcore.report() as seen:
        for _ in range(8):
            runtime = outcore.Runtime(budget="4MiB")
            cores.append(weakref.ref(runtime._pager.core))
            float(runtime.open(tmp_path / "data", dtype="f8")[5])
            del runtime
        gc.collect()
        outcore.Runtime(budget="4MiB").close()  # what was used as its pager went is looked at again
        assert [core for core in cores if core() is not None] == []
    # Runtimes of other tests may still be there.
    path = str(tmp_path / "data")
    files = [[file["uri"] for file in record["files"]] for record in seen.records]
    assert sum(any(uri.endswith(path) for uri in uris) for uris in files) == 8, files


@pytest.mark.filterwarnings("ignore:unclosed outcore array:ResourceWarning")
def test_a_view_whose_array_is_dropped_is_recorded_further(tmp_path):
    np.arange(1 << 21, dtype="f8").tofile(tmp_path / "data")
    with outcore.report() as seen:
        view = np.asarray(outcore.open(tmp_path / "data", dtype="f8", budget="4MiB"))
        gc.collect()
        outcore.Runtime(budget="4MiB").close()
        float(view.sum())
    assert seen.record["counters"]["read_bytes"] > 8 << 20


@pytest.mark.filterwarnings("ignore:unclosed outcore array:ResourceWarning")
def test_runtimes_of_other_threads_come_and_go_as_reports_begin_and_end():
    is_over = threading.Event()
    errors = []

    def work():
        try:
            while not is_over.is_set():
                with outcore.Runtime(budget="4MiB") as closed:
                    closed.zeros(10)[0] = 1
                outcore.Runtime(budget="4MiB").zeros(10)[0] = 1
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    with outcore.Runtime(budget="4MiB") as mine:
        for worker in workers:
            worker.start()
        try:
            for _ in range(20):
                with outcore.report() as seen:
                    mine.zeros(10)[0] = 1
                assert seen._missed == [] and seen.records
        finally:
            is_over.set()
            for worker in workers:
                worker.join()
        assert errors == []
        with outcore.report(runtime=mine):
            pass


def test_calls_that_bring_pages_in_count_as_waiting(array, runtime):
    with outcore.report(runtime=runtime) as seen:
        for i in range(0, len(array), 4096):
            float(array[i])
    told = seen.record
    counters = told["counters"]
    assert counters["call_waits"] >= len(array) // 4096
    assert counters["call_wait_ns"] > 0
    assert sum(told["latency"]["buckets"]) == counters["faults"] + counters["call_waits"]
    assert sum(told["timeline"]["stalled_s"]) > 0
    page = seen.html
    assert "waited is not counted" not in page
    assert " times a call waited for a page that was not in memory, " in page


def test_a_gather_waits_no_longer_than_it_takes(array, runtime):
    rows = np.random.default_rng(1).permutation(len(array))[:20_000]
    with outcore.report(runtime=runtime) as seen:
        array[rows]
    counters, seconds = seen.record["counters"], seen.record["program"]["seconds"]
    assert 0 < counters["call_wait_ns"] + counters["fault_ns"] <= seconds * 1e9


def test_a_notebook_shows_it_behind_the_cell(array, runtime, tmp_path, monkeypatch):
    shown = []
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    shell = None  # imported, and no shell of it runs
    with outcore.report(runtime=runtime):
        float(array[0])
    assert shown == []
    shell = object()
    with outcore.report(runtime=runtime) as seen:
        float(array[0])
    assert shown == [seen]
    with outcore.report(tmp_path / "run.json", runtime=runtime):
        float(array[0])
    with pytest.raises(KeyError):
        with outcore.report(runtime=runtime):
            raise KeyError("mine")
    assert shown == [seen]
    monkeypatch.setenv("OUTCORE_COMMAND", str(tmp_path / "missing"))
    assert seen._repr_html_().startswith("<pre>outcore: ")


def test_is_a_page_where_it_is_told_to_go(array, runtime, tmp_path):
    with outcore.report(tmp_path / "run.html", runtime=runtime) as seen:
        float(array.sum())
    page = (tmp_path / "run.html").read_text()
    assert page.startswith("<!") and '"outcore-run"' in page and "/*@" not in page
    assert "srcdoc=" in seen._repr_html_()
    seen.save(tmp_path / "run.json")
    assert json.loads((tmp_path / "run.json").read_text())["version"] == 1


def test_an_error_of_the_block_goes_on_and_the_page_is_made(array, runtime, tmp_path):
    with pytest.raises(KeyError):
        with outcore.report(tmp_path / "run.html", runtime=runtime):
            float(array[0])
            raise KeyError("mine")
    assert (tmp_path / "run.html").exists()


def test_one_record_is_made_at_a_time_and_again_afterwards(runtime):
    with outcore.report(runtime=runtime):
        with pytest.raises(OSError, match="recorded already"):
            outcore.report(runtime=runtime).__enter__()
    with outcore.report(runtime=runtime) as again:
        pass
    assert again.record["counters"]["faults"] == 0


def test_one_that_is_recorded_already_leaves_the_others(runtime, capfd):
    with outcore.Runtime(budget="5MiB") as other, outcore.report(runtime=other):
        with outcore.report() as seen:
            runtime.zeros(10)[0] = 1
            other.zeros(10)[0] = 1
    assert {one["gauges"]["budget_bytes"] >> 20 for one in seen.records} == {4}
    told = capfd.readouterr().err
    assert "outcore: 1 runtime(s) could not be recorded: " in told and "recorded already" in told


def test_one_that_fails_leaves_the_others_free(runtime, tmp_path):
    class Core:
        is_open, is_used = True, False

        def start_recording(self):
            pass

        def stop_recording(self):
            raise OSError(12, "no room")

    class Failing:
        core = Core()

    failing = Failing()
    with pytest.raises(OSError, match="no room"):
        with outcore.report(tmp_path / "run.json", runtime=runtime) as seen:
            seen.pager_started(failing)
    assert json.loads((tmp_path / "run.json").read_text()) == seen.record
    with outcore.report(runtime=runtime):
        pass


def test_a_forked_child_leaves_the_block_by_its_own_error(tmp_path):
    done = subprocess.run([sys.executable, "-c", """
import os, outcore
try:
    with outcore.report("run.json") as seen:
        child = os.fork()
        if child == 0:
            raise KeyError("mine")
except KeyError:
    try:
        seen.records
    except RuntimeError as error:
        os._exit(7 if "forked child" in str(error) else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(seen.records))
"""], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("7 1\n", "")


def test_what_is_wrong_is_told_before_the_block(runtime, tmp_path):
    with pytest.raises(FileNotFoundError):
        outcore.report(tmp_path / "missing" / "run.html", runtime=runtime).__enter__()
    with pytest.raises(RuntimeError, match="not been recorded"):
        outcore.report(runtime=runtime).record  # noqa: B018
    assert "not recorded yet" in repr(outcore.report(runtime=runtime))


def test_the_option_records_the_whole_run(tmp_path):
    with outcore.Runtime(budget="4MiB", report=str(tmp_path / "whole.json")) as runtime:
        runtime.zeros((1000, 100))[0] = 1
        with pytest.raises(OSError, match="recorded already"):
            outcore.report(runtime=runtime).__enter__()
    assert json.loads((tmp_path / "whole.json").read_text())["format"] == "outcore-run"
    with pytest.raises(ValueError, match="json"):
        outcore.Runtime(budget="4MiB", report=str(tmp_path / "page.html"))

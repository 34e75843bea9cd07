"""outcore.report: what a part of a program did, as a record and as a page."""

import json

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

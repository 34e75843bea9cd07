"""outcore export and its dashboard, by others' parsers: Prometheus', PromQL's, Grafana's."""

import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import prometheus_client.openmetrics.parser
import prometheus_client.parser
import promql_parser
import pytest

import grafana_schema

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOARD = ROOT / "docs/dashboards/outcore.json"


def export(*words):
    command = os.environ.get("OUTCORE_COMMAND")
    start = [command] if command else [sys.executable, "-m", "_outcore_command"]
    done = subprocess.run([*start, "export", "--pid", str(os.getpid()), *words],
                          capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def paging(numbers, small):
    """A runtime that has paged, whose file is still open."""
    with small.open(numbers, dtype="f8") as array:
        rows = np.random.default_rng(0).integers(0, len(array), 20000)
        assert np.array_equal(array[rows], rows)
        yield numbers


def families_of(text, parser):
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


@pytest.mark.parametrize("words,parser", [
    ([], prometheus_client.parser),
    (["--format", "openmetrics"], prometheus_client.openmetrics.parser),
])
def test_a_parser_of_the_format_reads_every_metric(paging, words, parser):
    families = families_of(export(*words), parser)
    ours = {name: one for name, one in families.items() if name.startswith("outcore_")}
    assert len(ours) > 30 and len(ours) == len(families)
    assert ours["outcore_faults"].type == "counter"
    assert ours["outcore_budget_bytes"].type == "gauge"
    size, = (one for one in ours["outcore_store_size_bytes"].samples
             if one.labels["store"].endswith(paging))
    assert size.value == 32 << 20
    runtime = size.labels["runtime"]  # of this test: other tests have left theirs

    def samples(name):
        return [one for one in ours[name].samples if one.labels["runtime"] == runtime]

    faults, = samples("outcore_faults")
    assert faults.name == "outcore_faults_total"
    assert samples("outcore_read_bytes")[0].value > 0
    assert faults.labels["pid"] == str(os.getpid())
    latency = samples("outcore_fault_duration_seconds")
    assert ours["outcore_fault_duration_seconds"].type == "histogram"
    counts = {sample.name: sample.value for sample in latency}
    buckets = [one.value for one in latency if one.name.endswith("_bucket")]
    assert buckets == sorted(buckets)
    calls, = samples("outcore_call_waits")
    assert counts["outcore_fault_duration_seconds_count"] == buckets[-1]
    assert buckets[-1] == faults.value + calls.value
    assert all(family.documentation for family in ours.values())


def test_both_formats_have_the_same_metrics(paging):
    plain = families_of(export(), prometheus_client.parser)
    others = families_of(export("--format", "openmetrics"), prometheus_client.openmetrics.parser)
    assert set(plain) == set(others)
    assert {name: one.type for name, one in plain.items()} == {
        name: one.type for name, one in others.items()}


def queries():
    board = json.loads(BOARD.read_text(encoding="utf-8"))
    return [(f'{panel["title"]} {target["refId"]}', target["expr"])
            for panel in board["panels"] for target in panel["targets"]]


def selectors(tree):
    """The names of all series in an expression."""
    if isinstance(tree, promql_parser.VectorSelector):
        return [tree.name]
    parts = [getattr(tree, name, None) for name in ("expr", "lhs", "rhs", "vector_selector")]
    parts += getattr(tree, "args", None) or []
    return [name for part in parts if isinstance(part, promql_parser.Expr)
            for name in selectors(part)]


@pytest.mark.parametrize("title,query", queries())
def test_a_query_of_the_dashboard_is_promql(title, query):
    # As Grafana replaces its variables.
    text = re.sub(r"\$\w+", ".*", query.replace("$__rate_interval", "1m"))
    names = selectors(promql_parser.parse(text))
    assert sorted(names) == sorted(re.findall(r"\boutcore_\w+", query)), title


def test_what_is_no_promql_is_refused():
    with pytest.raises(ValueError):
        promql_parser.parse("sum by (pid) rate(outcore_faults_total[1m])")


def test_the_dashboard_is_of_grafanas_schema():
    assert grafana_schema.faults_of(json.loads(BOARD.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path,value", [
    (["panels", 0, "type"], 7),
    (["panels", 0, "gridPos", "w"], "wide"),
    (["panels", 0, "fieldConfig", "defaults", "custom", "drawStyle"], "lines"),
    (["panels", 0, "options", "legend", "placing"], "bottom"),
    (["panels", 0, "targets", 0, "expression"], "up"),
    (["panels", 8, "options", "sortBy", 0, "desc"], "yes"),
    (["panels", 8, "transformations", 0, "id"], None),
    (["templating", "list", 1, "definition"], "label_values(up, job)"),
    (["templating", "list", 1, "refresh"], 9),
])
def test_a_dashboard_that_is_not_is_refused(path, value):
    board = json.loads(BOARD.read_text(encoding="utf-8"))
    place = board
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert len(grafana_schema.faults_of(board)) == 1

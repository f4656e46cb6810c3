#!/usr/bin/env python3
"""Reads exports of a run with other people's readers, and compares them with the full result and with each other."""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import cmarkgfm
import junitparser
import pyarrow.parquet
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

directory = pathlib.Path(sys.argv[1])
full = json.loads((directory / "results" / "tiny-trial-0.json").read_text())
requests = full["result"]["requests"]["succeeded"]
truth = HdrHistogram.decode(full["histograms"]["total"]["response"])
assert truth.get_total_count() == requests


def near(found, expected, most):
    """Whether `found` is at least `expected`, and beyond it by at most this part."""
    assert expected <= found <= expected * (1 + most) + 1, (found, expected)


def hgrm():
    rows = [line.split() for line in (directory / "result.hgrm").read_text().splitlines()]
    rows = [row for row in rows if row and not row[0].startswith("#") and row[0] != "Value"]
    assert float(rows[-1][1]) == 1.0 and int(rows[-1][2]) == requests
    for value, percentile, count, *_ in rows:
        # Of several values in one bucket, the readers name different ones.
        near(float(value) * 1e6, truth.get_value_at_percentile(float(percentile) * 100) * 0.999, 0.002)
        assert 0 < int(count) <= requests


def hlog():
    everything = HdrHistogram(64, 600 * 10**9, 3)
    log = HistogramLogReader(str(directory / "result.hlog"), everything)
    seconds = 0
    while (interval := log.get_next_interval_histogram()) is not None:
        everything.add(interval)
        seconds += 1
    assert seconds == len(full["seconds"]), seconds
    assert everything.get_total_count() == requests
    for percentile in (50, 90, 99):
        near(everything.get_value_at_percentile(percentile), truth.get_value_at_percentile(percentile) * 0.999, 0.035)


def memtier():
    found = json.loads((directory / "result.memtier-json").read_text())
    assert "authenticate" not in found["configuration"]
    totals = found["ALL STATS"]["Totals"]
    percentiles = totals["Percentile Latencies"]
    histogram = HdrHistogram.decode(percentiles["Histogram log format"]["Compressed Histogram"])
    assert histogram.get_total_count() == totals["Count"] == requests
    for name, percentile in (("p50.00", 50), ("p99.00", 99)):
        near(histogram.get_value_at_percentile(percentile), percentiles[name] * 1e3 * 0.998, 0.004)
    assert sum(second["Count"] for second in totals["Time-Serie"].values()) == requests


def columns():
    table = pyarrow.parquet.read_table(directory / "result.parquet").to_pylist()
    lines = [json.loads(line) for line in (directory / "result.jsonl").read_text().splitlines()]
    assert table == lines, (table[:2], lines[:2])
    assert sum(row["succeeded"] for row in table if row["operation"] is None) == requests


def comma_separated():
    with open(directory / "result.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["test"] for row in rows] == ["get", "set"]
    for row, operation in zip(rows, full["result"]["operations"]):
        assert abs(float(row["p50_latency_ms"]) * 1e6 - operation["responseTime"]["p50Nanoseconds"]) < 1


def junit():
    suites = junitparser.JUnitXml.fromfile(str(directory / "result.junit"))
    cases = [case for suite in suites for case in suite]
    assert len(cases) == suites.tests and suites.errors == suites.failures == 0, cases
    threshold = next(case for case in cases if case.name == "threshold p99")
    assert threshold.is_passed and "p99 of response time is" in threshold.system_out, threshold


def github_summary():
    """By GitHub's own renderer, which writes XML but for the document's root."""
    text = (directory / "result.github-summary").read_text()
    document = xml.etree.ElementTree.fromstring(f"<page>{cmarkgfm.github_flavored_markdown_to_html(text)}</page>")
    rows = [[(cell.text or "") for cell in row] for row in document.iter("tr")]
    found = {row[0]: row[2] for row in rows if row[0] in ("all", "get", "set")}
    shares = [int(found[name].replace(",", "")) for name in ("get", "set")]
    assert found["all"] == f"{requests:,}" and sum(shares) == requests, rows
    assert document.find("h2").text.startswith("tiny: "), text


def openmetrics():
    with tempfile.TemporaryDirectory() as blocks:
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", directory / "result.openmetrics", blocks]
        subprocess.run(command, check=True)
        # A database that it opens has a log, even an empty one.
        pathlib.Path(blocks, "wal").mkdir()
        dump = subprocess.run(["promtool", "tsdb", "dump", blocks], check=True, capture_output=True, text=True).stdout
    counts = [int(line.split()[-2]) for line in dump.splitlines() if 'outcome="succeeded"' in line]
    assert (min(counts), max(counts)) == (0, requests), counts


for reader in (hgrm, hlog, memtier, columns, comma_separated, junit, github_summary, openmetrics):
    reader()
    print(f"{reader.__name__}: read")

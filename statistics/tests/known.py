#!/usr/bin/env python3
"""Known answers for the statistics, by scipy: python3 -m venv v && v/bin/pip install scipy==VERSION && v/bin/python known.py >known.json"""

import json
import sys

import numpy
import scipy
from scipy import special, stats

SAMPLES = {
    "two": [101250.0, 99880.0],
    "three": [7.0, 7.0, 8.5],
    "five": [199841.2, 201233.9, 198760.4, 200410.0, 202999.1],
    "even": [1450.0, 1390.0, 1512.0, 1477.0, 1401.0, 1433.0],
    "equal": [2.5, 2.5, 2.5],
    # The mean of squares less the square of the mean has no digits left here.
    "large": [1e12 + 4, 1e12 + 7, 1e12 + 13, 1e12 + 16],
    "ten": [412.0, 405.5, 431.2, 399.9, 418.7, 402.3, 455.0, 410.1, 408.8, 409.4],
}

PAIRS = {
    "plain": ([100.0, 103.0, 98.0, 101.5, 99.0], [105.0, 107.5, 104.0, 106.0, 103.0]),
    "noisy": ([100.0, 140.0, 80.0, 120.0, 95.0, 101.0], [90.0, 150.0, 85.0, 100.0, 111.0, 99.0]),
    "two": ([10.0, 10.4], [11.0, 11.1]),
}


def summary(values, confidence):
    mean, deviation = numpy.mean(values), numpy.std(values, ddof=1)
    low, high = stats.t.interval(confidence, len(values) - 1, loc=mean, scale=deviation / len(values) ** 0.5) if deviation else (mean, mean)
    return {"confidenceBasisPoints": round(confidence * 10000), "mean": mean, "median": numpy.median(values),
            "standardDeviation": deviation, "lower": low, "upper": high}


def paired(baseline, candidate, confidence):
    test = stats.ttest_rel(numpy.log(candidate), numpy.log(baseline))
    interval = test.confidence_interval(confidence)
    return {"baseline": baseline, "candidate": candidate, "confidenceBasisPoints": round(confidence * 10000), "pValue": test.pvalue,
            "ratio": numpy.exp(numpy.mean(numpy.log(candidate) - numpy.log(baseline))),
            "lower": numpy.exp(interval.low), "upper": numpy.exp(interval.high)}


def welch(baseline, candidate, confidence):
    test = stats.ttest_ind(numpy.log(candidate), numpy.log(baseline), equal_var=False)
    interval = test.confidence_interval(confidence)
    return {"baseline": baseline, "candidate": candidate, "confidenceBasisPoints": round(confidence * 10000), "pValue": test.pvalue,
            "lower": numpy.exp(interval.low), "upper": numpy.exp(interval.high)}


def bootstrap_t(differences, confidence):
    """By the definition (Efron and Tibshirani 1993, 12.5; symmetric: Hall 1988), with so many resamples that its own chance is in the third digit."""
    random = numpy.random.default_rng(1)
    d = numpy.array(differences)
    n = len(d)
    resamples = random.choice(d, (2_000_000, n))
    errors = resamples.std(axis=1, ddof=1) / n ** 0.5
    t = abs(resamples.mean(axis=1) - d.mean()) / errors
    half = numpy.quantile(t, confidence) * d.std(ddof=1) / n ** 0.5
    return {"differences": differences, "confidenceBasisPoints": round(confidence * 10000),
            "lower": d.mean() - half, "upper": d.mean() + half}


SKEWED = [0.011, 0.013, 0.009, 0.042, 0.016, 0.012, 0.019, 0.031, 0.008, 0.014, 0.022, 0.010]

json.dump({
    "versions": {"python": sys.version.split()[0], "numpy": numpy.__version__, "scipy": scipy.__version__},
    "quantiles": [{"degrees": df, "probability": p, "t": special.stdtrit(df, p)}
                  for df in (1, 2, 3, 4, 5, 9, 14, 29, 120, 4.7) for p in (0.8, 0.9, 0.975, 0.995, 0.99975)],
    "twoSided": [{"degrees": df, "t": t, "p": 2 * stats.t.sf(t, df)} for df in (1, 4, 9, 40) for t in (0.1, 1.0, 2.5, 6.0, 20.0)],
    "summaries": [{"name": name, "values": values} | summary(values, c) for name, values in SAMPLES.items() for c in (0.95, 0.99)],
    "paired": [paired(a, b, c) for a, b in PAIRS.values() for c in (0.95, 0.9)],
    "welch": [welch(a, b, c) for a, b in [([100.0, 103.0, 98.0], [105.0, 120.0, 104.0, 99.0]), PAIRS["plain"]] for c in (0.95, 0.99)],
    "bootstrapT": [bootstrap_t(SKEWED, c) for c in (0.95, 0.99)],
}, sys.stdout, indent=1)
print()

"""Traces and manifests: of one run, and of several runs in one file."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from palimpsest import manifests, tables, traces
from palimpsest.errors import UserError
from palimpsest.sections import KINDS

RUN = {"model": "m", "language": "L", "size": 4, "seed": 0, "variant": "without-a"}


def trace(run=RUN, epochs=(0, 2, 5), seed=0):
    chance = np.random.default_rng(seed)
    shape = (len(epochs), 3)
    return traces.Trace(
        run=run,
        epochs=np.array(epochs),
        string_ids=np.array(["c", "a", "b"], dtype=object),
        n_tokens=np.array([4, 5, 6]),
        nll=chance.random(shape),
        n_correct=chance.integers(0, 4, shape),
        rank_sum=chance.integers(4, 99, shape),
    )


def written(path, runs):
    frames = [traces.to_frame(run) for run in runs]
    tables.write(path, pd.concat(frames, ignore_index=True), KINDS["trace"])
    return path


def same(one, other):
    assert one.run == other.run
    for name in ("epochs", "string_ids", "n_tokens", "nll", "n_correct", "rank_sum"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_trace_is_read_back_as_it_was_written(tmp_path):
    path = written(tmp_path / "trace.parquet", [trace()])
    same(traces.read(path), trace())
    (only,) = traces.read_all(path)
    same(only, trace())


def test_several_runs_are_read_back_in_their_order(tmp_path):
    """Any key can differ between the runs, and so can their lengths."""
    runs = [
        trace({**RUN, "variant": "without-z"}, seed=1),
        trace({**RUN, "variant": "without-b"}, (0, 1), seed=2),
        trace({**RUN, "variant": "without-b", "seed": 1}, seed=3),
        trace({**RUN, "variant": "without-b", "seed": 1, "model": "n"}, seed=4),
    ]
    read = traces.read_all(written(tmp_path / "trace.parquet", runs))
    assert len(read) == 4
    for one, other in zip(read, runs, strict=True):
        same(one, other)


def test_a_file_of_several_runs_is_not_the_trace_of_one(tmp_path):
    runs = [trace(), replace(trace(), run={**RUN, "variant": "without-b"})]
    path = written(tmp_path / "trace.parquet", runs)
    with pytest.raises(UserError, match=r"trace\.parquet: holds the traces of 2 runs and not of"):
        traces.read(path)
    path = written(tmp_path / "empty.parquet", [replace_epochs(trace(), 0)])
    with pytest.raises(UserError, match="holds the traces of 0 runs"):
        traces.read(path)
    assert traces.read_all(path) == []


def replace_epochs(whole, n):
    """The first `n` epochs of a trace."""
    cut = {name: getattr(whole, name)[:n] for name in ("nll", "n_correct", "rank_sum")}
    return replace(whole, epochs=whole.epochs[:n], **cut)


def manifest(path, **more):
    content = {
        "model": "m",
        "language": "L",
        "size": 4,
        "seed": 0,
        "variant": "base",
        "configuration": {"recipe": {"epochs": 3}},
        "wall_time_seconds": 2.5,
        "packages": {},
        "hardware": {},
        "revision": None,
        **more,
    }
    tables.write_json(path, content)
    return path


def test_a_manifest_may_stand_for_several_runs(tmp_path):
    """It has their number, the time of all of them together, and all numbers of epochs."""
    paths = [
        manifest(tmp_path / "a.json"),
        manifest(tmp_path / "b.json", variant="leave-one-out", n_runs=54, wall_time_seconds=100),
        manifest(tmp_path / "c.json", configuration={"recipe": {"epochs": 2}}, n_runs=1),
    ]
    assert manifests.totals([]) == {}
    totals = manifests.totals(paths)
    assert totals["n_runs"] == 56
    assert totals["wall_time_seconds"] == 105.0
    assert totals["epochs"] == [2, 3]

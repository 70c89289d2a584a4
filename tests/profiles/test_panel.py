"""Panels that users bring: what is read, and what is refused in one line."""

import itertools
import json
import tempfile
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.edits import changed_cell as changed
from helpers.experiments import message
from helpers.panels import simulated_panel
from palimpsest import profiles
from palimpsest.profiles.figures.panel_profile import panel_profile
from palimpsest.profiles.panel import to_panel
from palimpsest.profiles.panel_columns import is_loss
from palimpsest.profiles.profile import of_panel

ROWS = [
    ("a", 0, 1.0, 0.5),
    ("a", 1, 1.0, 0.7),
    ("b", 0, 1.0, 0.1),
    ("b", 1, 1.0, 0.2),
    ("c", 0, np.nan, 0.3),
    ("c", 1, np.nan, 0.4),
    ("d", 0, np.inf, 0.5),
    ("d", 1, np.inf, 0.6),
]


@pytest.fixture
def frame():
    return pd.DataFrame(ROWS, columns=["unit", "time", "cohort", "outcome"])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_is_read(frame, tmp_path, suffix):
    """Empty cells of `cohort` are units that are never treated."""
    path = tmp_path / f"mine{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    panel = profiles.read_panel(path)
    assert panel.times.tolist() == [0, 1]
    assert panel.cohorts.tolist() == [1, 1, np.inf, np.inf]
    np.testing.assert_array_equal(panel.outcome, [[0.5, 0.7], [0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])


TIMES = ("time", "cohort")


def dated(frame):
    """The frame with days from 2024-01-01 on as times."""
    start = pd.Timestamp("2024-01-01")
    days = {name: frame[name].where(frame[name] < np.inf) for name in TIMES}
    return frame.assign(**{name: start + pd.to_timedelta(d, unit="D") for name, d in days.items()})


BAD = {
    "a missing column": (
        lambda frame: frame.rename(columns={"cohort": "cohorts"}),
        "has no column 'cohort' (did you mean 'cohorts'?); it has: unit, time, cohorts, outcome; a "
        "panel has the columns unit, time, cohort, outcome",
    ),
    "a column twice": (
        lambda frame: pd.concat([frame, frame[["time"]]], axis=1),
        "has the column 'time' twice; rename or drop one of them",
    ),
    "no rows": (lambda frame: frame.iloc[:0], "has no rows"),
    "a word as outcome": (
        changed("outcome", 3, "high"),
        "row 3: outcome 'high' is not a finite number; mend the row or leave the unit out",
    ),
    "an empty outcome": (changed("outcome", 3, None), "row 3: outcome is empty; mend the row"),
    "an infinite outcome": (changed("outcome", 2, np.inf), "row 2: outcome inf is not a finite"),
    "a decimal comma": (changed("outcome", 2, "0,5"), "row 2: outcome '0,5' is not a finite"),
    "digits that Python joins": (changed("outcome", 2, "1_0"), "row 2: outcome '1_0' is not a"),
    "a truth value as outcome": (
        changed("outcome", 2, np.True_),
        "row 2: outcome True is not a finite number",
    ),
    "a word as time": (
        changed("time", 4, "late"),
        "row 4: time 'late' is not a time: a number, or a date such as 2024-01-31; mend the row",
    ),
    "an infinite time": (changed("time", 4, np.inf), "row 4: time inf is not a time"),
    "no time": (changed("time", 4, None), "row 4: time is empty; mend the row"),
    "a number that is too large": (
        changed("time", 4, 2**53 + 1),
        "row 4: time 9007199254740993 is too large to be told from its neighbours",
    ),
    "a word as cohort": (
        changed("cohort", 1, "first"),
        "row 1: cohort 'first' is not a time: a number, or a date such as 2024-01-31; mend the row "
        "or leave the unit out: the column holds the time at which the unit is first trained on, "
        "or nothing if it never is",
    ),
    "R's missing value as cohort": (changed("cohort", 5, "NA"), "row 5: cohort 'NA' is not a time"),
    "a cohort before all time": (changed("cohort", 1, -np.inf), "row 1: cohort -inf is not a time"),
    "a date as cohort": (
        lambda frame: frame.assign(cohort=pd.Timestamp("2024-01-31")),
        "time 0 in row 1 is a number and cohort 2024-01-31 00:00:00 in row 1 is a date without a "
        "time zone, which cannot be compared; write all times as numbers, or all as dates",
    ),
    "a time zone on one side": (
        lambda frame: dated(frame).assign(
            time=lambda dates: dates["time"].dt.tz_localize("Asia/Tokyo")
        ),
        "time 2024-01-01 00:00:00+09:00 in row 1 is a date with a time zone and cohort 2024-01-02 "
        "00:00:00 in row 1 is a date without a time zone, which cannot be compared; "
        "write all times as dates with a time zone",
    ),
    "a time that is finer than a microsecond": (
        changed("time", 2, pd.Timestamp(1)),
        "row 2: time 1970-01-01 00:00:00.000000001 is finer than a microsecond",
    ),
    "a date after the year 9999": (
        changed("time", 2, np.datetime64("20000-01-01")),
        "row 2: time 20000-01-01 is a date outside of the years 1 to 9999; mend the row",
    ),
    "a date that microseconds cannot reach": (
        changed("time", 2, np.datetime64(2**62, "s")),
        "row 2: time 146138514283-06-19T07:45:04 is a date outside of the years 1 to 9999",
    ),
    "a tensor as time": (
        changed("time", 2, torch.tensor(1.0)),
        "row 2: time tensor(1.) is not a time: a number, or a date such as 2024-01-31; mend the",
    ),
    "months as time": (
        lambda frame: frame.assign(time=pd.PeriodIndex(dated(frame)["time"], freq="M")),
        "column 'time' is of the type extension<pandas.period",
    ),
    "no name": (changed("unit", 5, None), "row 5: unit is empty; mend the row"),
    "a name that is none": (changed("unit", 5, ("a",)), "row 5: unit ('a',) is not a name"),
    "a unit twice at a time": (
        changed("time", 2, 0),
        "row 2: unit 'a' is at time 0 a second time, after row 1; keep one of its rows",
    ),
    "equal rows": (
        lambda frame: pd.concat([frame, frame.iloc[2:4]], ignore_index=True),
        "row 9: unit 'b' is at time 0 a second time, after row 3; keep one of its rows (2 rows of "
        "the table are such)",
    ),
    "a unit that is missing at a time": (
        lambda frame: frame.drop(3),
        "row 3: unit 'b' has no outcome at time 1; every unit needs one at each of the 2 times: "
        "add the row, or leave the unit or the time out",
    ),
    "two cohorts of a unit": (
        changed("cohort", 4, np.nan),
        "row 4: unit 'b' has cohort never here and 1 in row 3; correct one of them",
    ),
    "two cohorts of a unit between the same times": (
        lambda frame: frame.assign(cohort=[0.5, 0.6, *frame["cohort"][2:]]),
        "row 2: unit 'a' has cohort 0.6 here and 0.5 in row 1; correct one of them",
    ),
    "no untreated unit": (
        lambda frame: frame.iloc[:4],
        "every unit is treated, so there is nothing to compare with; add units that the model is "
        "never trained on, with an empty cohort",
    ),
    "no treated unit": (lambda frame: frame.iloc[4:], "no unit is ever treated"),
    "one unit in a cohort": (
        lambda frame: frame.drop([0, 1]),
        "row 1: cohort 1 has only one unit, so its spread is unknown; add units, leave these out, "
        "or leave out some times",
    ),
    "one unit in each of several cohorts": (
        lambda frame: frame.assign(cohort=[8, 8, 9, 9, *frame["cohort"][4:]]),
        "row 1: cohort 8 has only one unit, and so has cohort 9, so its spread is unknown; add "
        "units, leave these out, or leave out some times: units that are trained on between the "
        "same two times are one cohort; within this panel, a unit of a cohort after the "
        "last time is never treated",
    ),
    "one untreated unit": (
        lambda frame: frame.drop([6, 7]),
        "row 5: only one unit is never treated",
    ),
    "an outcome and a loss": (
        lambda frame: frame.assign(nll=1.0),
        "has the columns 'outcome' and 'nll', and a panel has one outcome",
    ),
}


@pytest.mark.parametrize("mistake", BAD)
def test_a_bad_panel_is_refused_in_one_line(frame, mistake):
    edit, expected = BAD[mistake]
    said = message(lambda: to_panel(edit(frame), "mine.csv"))
    assert said.startswith(f"mine.csv: {expected}")
    assert "np." not in said
    assert "Timestamp(" not in said


def test_a_file_that_is_no_panel(tmp_path):
    listed = ".csv, .tsv, .jsonl, .json or .parquet"
    said = message(lambda: profiles.read_panel(tmp_path / "nowhere.csv"))
    assert f"no such file; a panel is a {listed} file" in said
    (tmp_path / "mine.xlsx").touch()
    said = message(lambda: profiles.read_panel(tmp_path / "mine.xlsx"))
    assert f"a panel cannot be read from .xlsx; save it as {listed}" in said
    (tmp_path / "mine.parquet").write_text("not a table")
    said = message(lambda: profiles.read_panel(tmp_path / "mine.parquet"))
    assert "mine.parquet: cannot be read as Parquet:" in said


# What is taken otherwise than it is written, and said


LINES = {
    "a unit twice at a time": (
        changed("time", 2, 0),
        ":4: unit 'a' is at time 0 a second time, after line 2; keep",
    ),
    "two cohorts of a unit": (changed("cohort", 4, np.nan), "here and 1.0 in line 6; correct one"),
    "a date as cohort": (
        changed("cohort", 3, "2024-01-31"),
        "time 0 in line 2 is a number and cohort '2024-01-31' in line 6 is a date",
    ),
    "one unit in a cohort": (lambda frame: frame.drop([0, 1]), ":2: cohort 1 has only one unit"),
}


@pytest.mark.parametrize("mistake", LINES)
def test_rows_are_counted_as_lines_where_they_are_lines(frame, tmp_path, mistake):
    """Before each object is an empty line."""
    edit, expected = LINES[mistake]
    path = as_jsonl(edit(frame), tmp_path)
    path.write_text("".join(f"\n{line}\n" for line in path.read_text().splitlines()))
    said = message(lambda: profiles.read_panel(path))
    assert expected in said
    assert " row " not in said.partition(";")[0]


@pytest.fixture
def said():
    """A function that reads a frame, and gives the panel and the lines that this says."""

    def read(frame):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            panel = to_panel(frame, "mine.csv")
        return panel, [str(each.message) for each in caught]

    return read


def test_nothing_is_said_of_a_plain_panel(frame, said):
    panel, lines = said(frame)
    assert lines == []
    assert panel.cohorts.tolist() == [1, 1, np.inf, np.inf]


def test_what_is_trained_on_between_two_times_belongs_to_the_later_one(frame, said):
    """Also if each of the units was trained on at a step of its own."""
    panel, (line,) = said(frame.assign(cohort=[0.5, 0.5, 0.75, 0.75, *frame["cohort"][4:]]))
    assert panel.cohorts.tolist() == [1, 1, np.inf, np.inf]
    assert line == (
        "mine.csv: cohorts 0.5, 0.75: between two times: trained on, as far as can be seen, at the "
        "later one, such as 0.5 at 1"
    )


@pytest.mark.parametrize(
    ("cohort", "kept", "expected"),
    [
        (-3, 0, "cohort -3: before the first time, 0: there is no outcome from before its"),
        (
            1234567,
            1234567,
            "cohort 1234567: after the last time, 1: there is no outcome from after",
        ),
    ],
)
def test_a_cohort_that_is_never_seen_before_or_after_is_said(frame, said, cohort, kept, expected):
    panel, (line,) = said(frame.assign(cohort=frame["cohort"].replace(1, cohort)))
    assert line.startswith(f"mine.csv: {expected} ")
    assert panel.treated.tolist() == [kept]


SMALLER_IS_BETTER = [
    *("logloss", "crossentropy", "CELoss", "NLLLoss", "MLMLoss", "evalloss", "nlls", "NLLs"),
    *("neg_log_lik", "neg_ll", "negloglik", "neg_logprobs", "NegLogProb", "perplexities", "bpc"),
    *("mse", "error", "CE", "crossent", "logppl", "deviance", "-log_prob", "1/prob", "ll_neg"),
    *("eval/loss", "loss.mean", "test-nll", "mean_neg_log_likelihood", "entropies", "minus_ll"),
]
LARGER_IS_BETTER = [
    *("likelihood_gain", "prob_gain", "logp_gain", "logprob_improvement", "bits_memorised"),
    *("memorized_bits", "inverse_perplexity", "loss_drop", "accuracy", "recall", "all", "full"),
    *("loss_neg", "-loss", "-nll", "1/ppl", "exp(-loss)", "loss_negative", "lossNeg", "ce_neg"),
    *("skill", "negligible", "lossless_share", "log_lik", "negative_perplexity", "recollection"),
]


@pytest.mark.parametrize("name", ["loss", "nll", "Loss", "NLL"])
def test_a_loss_is_an_outcome_with_the_other_sign(frame, said, name):
    panel, (line,) = said(frame.rename(columns={"outcome": name}))
    np.testing.assert_array_equal(panel.outcome, -to_panel(frame).outcome)
    assert line.startswith(
        f"mine.csv: the column {name!r} is taken as a loss: the outcome is minus"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("eval_loss", True),
        *((name, True) for name in SMALLER_IS_BETTER),
        *((name, False) for name in LARGER_IS_BETTER),
        ("loss_reduction", False),
        ("NegLogProb", True),
        ("log_prob", False),
        ("surprisal", True),
        ("bits_per_byte", True),
        ("evalLoss", True),
        ("mean NLL", True),
        ("perplexity", True),
        ("cross-entropy", True),
        ("negative_log_likelihood", True),
        ("log_likelihood", False),
        ("neg_loss", False),
        ("negative_rank", False),
        ("glossary", False),
        ("outcome", False),
    ],
)
def test_a_loss_is_known_by_the_words_of_its_name(name, expected):
    assert is_loss(name) == expected


def test_copies_of_units_are_counted(frame, said):
    """They have other names; a valid panel in which each string stands twice."""
    copies = frame.assign(unit=frame["unit"] + "2")
    _, (line,) = said(pd.concat([frame, copies], ignore_index=True))
    assert line.startswith(
        "mine.csv: 4 of 8 units have the outcomes of another one at every time; keep one of each"
    )
    counts = frame.assign(outcome=[0, 1] * 4)  # right and wrong answers
    assert said(counts)[1] == []


def test_a_checkpoint_that_is_there_twice_is_said(frame, said):
    again = frame[frame["time"] == 0].assign(time=7)
    _, (line,) = said(pd.concat([frame, again], ignore_index=True))
    assert line.startswith(
        "mine.csv: all units have the same outcomes at the times 0 and 7; leave one of them out"
    )


def test_outcomes_that_never_change_are_said(frame, said):
    first = frame.groupby("unit")["outcome"].transform("first")
    _, (line,) = said(frame.assign(outcome=first.add([0, 0, 0, 0, 0, 0, 0.25, 0.25])))
    assert line.startswith("mine.csv: no unit's outcome ever changes; check that")


def test_whole_numbers_that_never_change_are_said(frame, said):
    """Counts are often equal, but not at every time for every unit."""
    first = frame.groupby("unit")["outcome"].transform("first").rank(method="dense")
    _, (line,) = said(frame.assign(outcome=first))
    assert line.startswith("mine.csv: no unit's outcome ever changes; check that")


def test_two_forms_of_one_name_are_said(frame, said):
    """They look alike, and are different units."""
    names = {"a": "\u00e9", "b": "e\u0301"}
    panel, (line,) = said(frame.assign(unit=frame["unit"].replace(names)))
    assert len(panel.cohorts) == 4
    assert r"units '\xe9' and 'e\u0301' have names of the same characters in two forms" in line


def test_a_file_may_have_names_of_its_own(frame, said, tmp_path):
    """The columns of the file are asked for by name, and a loss is known by its name."""
    asked = {"unit": "document", "time": "step", "cohort": "trained at"}
    path = tmp_path / "mine.csv"
    frame.assign(eval_loss=-frame["outcome"]).rename(columns=asked).to_csv(path, index=False)
    expected, _ = said(frame)
    for outcome in ({"outcome": "eval_loss"}, {"loss": "eval_loss"}, {"outcome": "outcome"}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            panel = profiles.read_panel(path, {**asked, **outcome})
        of_loss = ["'eval_loss' is taken as a loss" in str(each.message) for each in caught]
        assert of_loss == ([] if outcome == {"outcome": "outcome"} else [True])
        np.testing.assert_array_equal(panel.outcome, expected.outcome)
        assert panel.cohorts.tolist() == expected.cohorts.tolist()
    wrong = message(lambda: profiles.read_panel(path, {**asked, "time": "steps"}))
    assert ":1: has no column 'steps' for 'time' (did you mean 'step'?); it has: document" in wrong
    both = message(lambda: profiles.read_panel(path, {"outcome": "outcome", "loss": "eval_loss"}))
    assert "outcome 'outcome' and loss 'eval_loss' are both asked for" in both


def test_an_object_may_lack_the_cohort_that_it_never_has(frame, tmp_path):
    """Also the first one."""
    rows = frame.iloc[::-1].to_dict("records")
    rows = [{k: v for k, v in row.items() if k != "cohort" or v == 1} for row in rows]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    assert profiles.read_panel(path).cohorts.tolist() == [1, 1, np.inf, np.inf]


def test_a_cohort_without_a_time_before_it_is_named_as_a_date(frame):
    early = dated(frame).assign(cohort=lambda dates: dates["cohort"] - pd.Timedelta(days=1))
    said = message(lambda: profiles.difference_in_differences(early))
    assert said.startswith("panel: row 1 (2024-01-01): cohort")


# One panel in many representations

NAMES = ["01", "1", "1e5", "100000", "NA", "null", "nan", "True", " x", "None", "a,b", 'c"d']


def as_csv(frame, folder, suffix=".csv"):
    path = folder / f"mine{suffix}"
    frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    return path


def as_tsv(frame, folder):
    return as_csv(frame, folder, ".tsv")


def as_jsonl(frame, folder):
    """Python's own writer, which keeps all digits."""
    path = folder / "mine.jsonl"
    cells = frame.astype(object).where(frame.notna(), None).to_dict("records")
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in cells))
    return path


def as_json(frame, folder):
    lines = as_jsonl(frame, folder).read_text().splitlines()
    path = folder / "mine.json"
    path.write_text("[" + ", ".join(lines) + "]")
    return path


def as_parquet(frame, folder):
    path = folder / "mine.parquet"
    frame.to_parquet(path)
    return path


def in_memory(frame, folder):
    return frame


STORES = (as_csv, as_tsv, as_jsonl, as_json, as_parquet, in_memory)


def decimals(column):
    return column.map(lambda number: None if pd.isna(number) else Decimal(repr(float(number))))


NUMBERS = {
    "float64": lambda column: column.astype("float64"),
    "text": lambda column: column.map(lambda x: None if pd.isna(x) else repr(float(x))).astype(
        object
    ),
    "decimals": lambda column: decimals(column).astype(object),
    "categories": lambda column: column.astype("category"),
    "arrow": lambda column: column.astype("double[pyarrow]"),
    "arrow's dictionary": lambda column: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(column, from_pandas=True).dictionary_encode())
    ),
    "masked": lambda column: column.astype("Float64"),
    "objects": lambda column: column.astype(object),
}
WHOLE = {
    name: lambda column, name=name: column.astype(name) for name in ("Int8", "Int64", "UInt16")
}
WHOLE |= {"float32": lambda column: column.astype("float32")}
DATES = {
    **{unit: lambda column, unit=unit: column.dt.as_unit(unit) for unit in ("s", "ms", "us", "ns")},
    "text": lambda column: column.map(lambda x: None if pd.isna(x) else x.isoformat()).astype(
        object
    ),
    "days": lambda column: column.map(lambda x: None if pd.isna(x) else x.date()).astype(object),
    "objects": lambda column: column.astype(object),
    "arrow": lambda column: column.astype("timestamp[ms][pyarrow]"),
    "categories": lambda column: column.astype("category"),
}
ZONED = {
    zone: lambda column, zone=zone: column.dt.tz_convert(zone)
    for zone in ("UTC", "Asia/Tokyo", "America/New_York")
}


def table_bytes(panel):
    """Both tables of a panel, as bytes."""
    tables = (profiles.difference(panel, n=20), profiles.difference_in_differences(panel, n=20))
    return [table.to_csv() for table in tables]


def plain(frame):
    return frame


def in_zones(frame):
    return dated(frame).assign(**{n: dated(frame)[n].dt.tz_localize("UTC") for n in TIMES})


# What times are, and how they may be represented
CALENDARS = {
    "numbers": (plain, NUMBERS | WHOLE),
    "dates": (dated, DATES),
    "dates with a time zone": (in_zones, ZONED),
}


@st.composite
def representations(draw):
    """What the times are, how each column is represented, and how the table is stored."""
    calendar, kinds = CALENDARS[draw(st.sampled_from(sorted(CALENDARS)))]
    time, cohort = (kinds[draw(st.sampled_from(sorted(kinds)))] for _ in TIMES)
    outcome = NUMBERS[draw(st.sampled_from(sorted(NUMBERS)))]
    return calendar, time, cohort, outcome, draw(st.sampled_from(STORES))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), represented=representations())
def test_a_panel_is_the_same_in_every_representation(seed, represented):
    """To the byte, in any order of rows and columns, and under any names."""
    calendar, time, cohort, outcome, store = represented
    chance = np.random.default_rng(seed)
    frame = simulated_panel(chance, cohorts=(1, 3), n_treated=3, n_untreated=6, n_times=4)
    frame["unit"] = frame["unit"].map(dict(zip(frame["unit"].unique(), NAMES, strict=True)))
    frame = calendar(frame.assign(cohort=frame["cohort"].where(frame["cohort"] < np.inf)))
    expected = table_bytes(to_panel(frame))
    changed = frame.assign(
        time=time(frame["time"]),
        cohort=cohort(frame["cohort"]),
        outcome=outcome(frame["outcome"]),
    )
    changed = changed.iloc[chance.permutation(len(changed))].reset_index(drop=True)
    changed = changed[list(chance.permutation(changed.columns))]
    with tempfile.TemporaryDirectory() as folder:
        stored = store(changed, Path(folder))
        read = to_panel if isinstance(stored, pd.DataFrame) else profiles.read_panel
        assert table_bytes(read(stored)) == expected


def test_times_that_are_equal_up_to_rounding_are_one_time(frame):
    """0.1 + 0.2 and 0.3, and float32's 0.3, in either column; whole numbers are never rounded."""
    for name, (time, kind) in itertools.product(
        TIMES, [(0.3, float), (0.1 + 0.2, float), (0.3, "float32"), ("0.3", object)]
    ):
        other = frame.assign(time=frame["time"] * 0.3, cohort=frame["cohort"] * 0.3)
        column = other[name].astype(object).where(other[name] != 0.3, time).astype(kind)
        panel = to_panel(other.assign(**{name: column}))
        assert panel.times.tolist() == [0, 0.3]
        assert panel.treated.tolist() == [0.3]
    large = frame.assign(time=frame["time"] + 2**53 - 2, cohort=frame["cohort"] + 2**53 - 2)
    assert to_panel(large).times.tolist() == [2**53 - 2, 2**53 - 1]


def sized(treated, untreated):
    """A panel with cohorts of some sizes, and units that are never treated."""
    cohorts = np.repeat([*range(1, len(treated) + 1), np.inf], [*treated, untreated])
    units = [f"u{place}" for place in range(len(cohorts))]
    pairs = itertools.product(zip(units, cohorts, strict=True), range(3))
    rows = [(unit, time, cohort, float(time * len(unit))) for (unit, cohort), time in pairs]
    return pd.DataFrame(rows, columns=["unit", "time", "cohort", "outcome"])


@pytest.mark.parametrize(
    ("treated", "untreated", "small"),
    [
        ((3, 8), 30, "cohort 1"),
        ((3, 2), 30, "cohorts 1, 2"),
        ((3, 8), 3, "the units never treated"),
        ((4, 8), 30, None),
        ((2, 3), 2, None),
    ],
)
def test_groups_too_small_for_their_bands_are_said(said, treated, untreated, small):
    _, lines = said(sized(treated, untreated))
    if small is None:
        assert lines == []
    else:
        (line,) = lines
        assert f"{small}: fewer than 4, compared with more, so bands are too narrow" in line


def test_a_supposed_loss_that_training_lowers_is_asked_about_once(said):
    """Its name says that it is a loss, its values say that more is better."""
    frame = sized((9, 9), 20)
    chance = np.random.default_rng(0)
    effect = 5.0 * (frame["time"] >= frame["cohort"])
    frame["loss"] = frame.pop("outcome") + effect + chance.normal(size=len(frame))
    panel, _ = said(frame)
    assert panel.is_loss
    with pytest.warns(profiles.LossWarning, match="It was taken for a loss because") as caught:
        of_panel(panel, "mine")
    assert len(caught) == 1


@pytest.mark.parametrize("stored", [np.float16, np.float32, np.float64])
def test_the_type_of_stored_outcomes_is_kept(frame, tmp_path, stored):
    """Rounding errors are those of the type in the file."""
    frame["outcome"] = frame["outcome"].astype(stored)
    assert to_panel(frame).stored == stored
    frame.to_parquet(tmp_path / "a.parquet")
    assert profiles.read_panel(tmp_path / "a.parquet").stored == stored
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert profiles.read_panel(tmp_path / "a.csv").stored is float


@pytest.mark.figures
@pytest.mark.parametrize(
    ("first", "shown"),
    [("2024-02-28", ["2024-02-28", "2024-02-29", "2024-03-01"]), (10, ["10", "11", "12"])],
)
def test_the_figure_of_a_panel_names_dates_and_losses(said, first, shown):
    frame = sized((9, 9), 20)
    for name in ("time", "cohort"):
        days = frame[name].replace(np.inf, np.nan)
        dated = isinstance(first, str)
        frame[name] = pd.Timestamp(first) + pd.to_timedelta(days, "D") if dated else days + first
    panel, _ = said(frame.rename(columns={"outcome": "loss"}))
    left, right, bar = panel_profile(*of_panel(panel, "mine")).axes
    assert [tick.get_text() for tick in left.get_xticklabels()] == shown
    assert [tick.get_text() for tick in left.get_yticklabels()] == shown[1:]
    assert right.get_ylabel() == bar.get_ylabel() == "effect on minus the loss"


def test_columns_of_other_names_are_named_in_python(frame, tmp_path):
    """Without the names, the line has the argument of the function, and not a file's keys."""
    renamed = frame.rename(columns={"unit": "doc", "outcome": "score"})
    renamed.to_csv(tmp_path / "mine.csv", index=False)
    names = {"unit": "doc", "outcome": "score"}
    of_file = profiles.read_panel(tmp_path / "mine.csv", columns=names)
    of_frame = profiles.to_panel(renamed, columns=names)
    np.testing.assert_array_equal(of_frame.outcome, of_file.outcome)
    for read in (
        lambda: profiles.to_panel(renamed, columns={"outcome": "score"}),
        lambda: profiles.read_panel(tmp_path / "mine.csv", columns={"outcome": "score"}),
    ):
        said = message(read)
        assert said.endswith('or name yours: columns={"unit": "document", "time": "step"}')


def test_errors_and_warnings_name_a_cohort_as_the_table_has_it(frame, said):
    """Also where its units count as trained on at a time of the panel."""
    early = frame.assign(cohort=frame["cohort"].replace(1.0, -1.0))
    panel, lines = said(early)
    assert any("cohort -1: before the first time, 0" in line for line in lines)
    assert "cohort -1 has no base period" in message(
        lambda: profiles.difference_in_differences(panel)
    )
    mixed = frame.assign(cohort=[-1, -1, -2, -2, *frame["cohort"][4:]])
    assert "cohorts -2, -1 have no base period" in message(
        lambda: profiles.difference_in_differences(mixed)
    )
    alone = early.drop([0, 1])
    assert "cohort -1 has only one unit" in message(lambda: profiles.to_panel(alone))


def test_a_table_counts_negative_effects_by_cohorts_as_the_estimator_does():
    frame = sized((9, 9), 20)
    chance = np.random.default_rng(0)
    frame["outcome"] += chance.normal(size=len(frame)) - 9.0 * (frame["time"] >= frame["cohort"])
    panel = profiles.to_panel(frame)
    lines = []
    for estimate in (profiles.difference_in_differences, lambda panel: of_panel(panel, "mine")):
        with pytest.warns(profiles.LossWarning) as caught:
            estimate(panel)
        lines += [str(one.message) for one in caught]
    assert len(lines) == 2
    assert lines[0] == lines[1]
    assert "2 of 2 effects" in lines[0]


def test_the_table_of_a_panel_begins_with_difference_in_differences(frame):
    cells, _ = of_panel(to_panel(frame), "mine")
    assert cells["estimator"].iloc[0] == "difference_in_differences"


def test_a_row_of_a_text_file_has_the_number_of_its_line(frame, tmp_path):
    """As the header has: in the line, the file and the number stand as editors take them."""
    frame["outcome"] = frame["outcome"].astype(object)
    frame.loc[3, "outcome"] = "much"
    frame.to_csv(tmp_path / "mine.csv", index=False)
    said = message(lambda: profiles.read_panel(tmp_path / "mine.csv"))
    assert said.startswith(f"{tmp_path}/mine.csv:5: outcome 'much' is not")

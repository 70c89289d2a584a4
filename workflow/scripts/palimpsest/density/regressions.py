"""Mixed-effects regressions: does a leak, or the density of the training data, predict performance?

Perplexity is regressed linearly, and whether the answer is right logistically. Random intercepts
are those of the paper, the length and the string within its group, and two of ours, the run and the
seed. A run is one trained model, and a good model is good on all strings. The paper trains one
model per condition, so it cannot tell a good model from a helpful leak; here, every condition is
trained once per seed, and strings that are never leaked are in the same runs.

P-values and intervals come from exchanging strings (`label_permutations`), because p-values of
the model itself, which the paper reports, are too small for our data. Both are in the table.

The log length is a term beside density, unlike in the paper: a random intercept assumes that
density does not depend on length. tests/benchmarks/bench_regressions.py shows what happens without
the term where both density and loss depend on length.

Source: LMD3: Language Model Data Density Dependence, appendix A.4, A.5 and A.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from palimpsest.density import kinds
from palimpsest.density.interventions import MOST_COPIES, MOST_PARAPHRASES
from palimpsest.density.label_permutations import Exchanges, Scores, random_orders
from palimpsest.density.mixed_models import (
    SATTERTHWAITE,
    WALD,
    Fit,
    can_be_fitted,
    fit,
    random_intercepts,
)
from palimpsest.density.rounding import OF_DISTANCE, is_flat, of_log_density
from palimpsest.errors import UserError
from palimpsest.making import makes, reads
from palimpsest.statistics import NO_INTERVAL
from palimpsest.tables.kinds import Kind

PERMUTATION, PERMUTATIONS = "permutation", 4999
RAW, LOG = "raw", "log"
PREDICTORS = (RAW, LOG)
OUTCOMES = {kinds.PERPLEXITY: "perplexity", kinds.ACCURACY: "answer_right"}
INTERCEPT, EXACT, DENSITY, DISTANCE = "intercept", "exact copy", "density", "mean distance"
LOG_LENGTH = "log length"
LINEAR = "paraphrases, linear"
# Orthogonal polynomials over 0 to 3 paraphrases, of length 1, as R's contr.poly
POLYNOMIALS = {
    LINEAR: np.array([-3, -1, 1, 3]) / np.sqrt(20),
    "paraphrases, quadratic": np.array([1, -1, -1, 1]) / 2,
    "paraphrases, cubic": np.array([-1, 3, -3, 1]) / np.sqrt(20),
}
STUDY = ["model", "language", "size"]
ROW = ["seed", "string_id", "variant"]
# Queries of a text per bin of length, and the most bins: as many as the paper's bins of density
FEWEST_IN_BIN, MOST_BINS = 10, 20


class Regression(NamedTuple):
    """A regression to make: its columns in the table, and its terms float[rows] by name."""

    columns: dict
    terms: dict[str, np.ndarray]


@reads(leakage=kinds.LEAKAGE)
@makes(kinds.REGRESSIONS)
def regress(leakage: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Regressions of performance on leaks and on density, over the runs of all seeds.

    Each is made twice by the same code: of leaked strings, and of placebos as if they had been
    leaked; both with the strings that are never leaked. For placebos, the leak condition must
    predict nothing. Density may: dense strings may be easier without any leak.

    Parameters
    ----------
    leakage : table of kind `leakage`, of all runs of the factorial of one model, language and size
    seed : of the exchanges of strings

    Estimates are null where an outcome or a term does not vary, or if the fit did not converge. The
    p-value of exchanges does not need the fit; it is null if an outcome or a term does not vary, or
    if no exchange of strings of a group changes anything.

    Raises `UserError` if columns or strings are missing, if the table is of several studies, or if
    a string is not in the same runs as others.
    """
    _check(leakage, seed)
    ordered = in_units(
        leakage.sort_values([*kinds.OF_SETTING, *ROW], kind="stable", ignore_index=True)
    )
    rows = [
        row
        for treated in (kinds.LEAKED, kinds.PLACEBO)
        for row in regress_treated(
            ordered[ordered["string_role"].isin([treated, kinds.NEVER])], treated, seed
        )
    ]
    study = leakage.iloc[0][STUDY].to_dict()
    return _tabulated([{**study, **row} for row in rows], kinds.REGRESSIONS)


def in_units(
    rows: pd.DataFrame, of_density: float | None = None, of_distance: float | None = None
) -> pd.DataFrame:
    """The rows with columns `raw`, `log` and `distance`: densities and distances, standardised.

    A unit is one standard deviation over all rows of a setting. Leaked strings and placebos are
    among them, so effects on both have one unit. `of_density` and `of_distance` are magnitudes as
    in `rounding.is_flat`.
    """
    of_setting = rows.groupby(kinds.OF_SETTING)
    return rows.assign(
        **{
            form: of_setting["log_density"].transform(in_form, form, of_density)
            for form in PREDICTORS
        },
        distance=of_setting["mean_distance"].transform(standardised, of_distance),
    )


def regress_treated(
    rows: pd.DataFrame, treated: str, seed: int, asked: list[Regression] | None = None
) -> Iterator[dict]:
    """The rows of the table for leaked strings or placebos.

    `rows` are those of `treated` strings and of strings that are never leaked, `in_units`, sorted
    by `OF_SETTING` and `ROW`. `asked` are some regressions; all of them by default.
    """
    first = next(table for _, table in rows.groupby(kinds.OF_SETTING, sort=True))
    n_runs = first["variant"].nunique()
    units = first.iloc[::n_runs]
    strata = units.groupby(["seed", "group"]).ngroup().to_numpy()
    exchanges = Exchanges(strata, n_runs, random_orders(strata, PERMUTATIONS, seed))
    intercepts = _intercepts(first)
    asked = asked or all_regressions(rows, treated)
    for outcome, column in OUTCOMES.items():
        values = first[column].astype(float).to_numpy()
        if np.isnan(values).all():
            continue
        is_logistic = outcome == kinds.ACCURACY
        empty = fit(values, np.empty((len(values), 0)), intercepts, is_logistic)
        null = Scores(empty, values, intercepts) if empty.converged else None
        for regression in asked:
            terms = np.column_stack(list(regression.terms.values()))
            fitted = fit(values, terms, intercepts, is_logistic, empty)
            p_values = fitted.p_values.copy()
            # They need the fit without terms alone. So they also decide where a leak makes all
            # answers right, and no finite estimate is the most probable one.
            if null is not None and can_be_fitted(values, terms):
                p_values[1:] = null.p_values(terms, exchanges)
            intervals = [NO_INTERVAL] * len(p_values)
            if fitted.converged:
                scores = Scores(fitted, values, intercepts)
                intervals[1:] = scores.intervals(terms, fitted.estimates[1:], exchanges)
            columns = {"string_role": treated, "outcome": outcome, **regression.columns}
            p_kinds = [WALD if is_logistic else SATTERTHWAITE] + [PERMUTATION] * terms.shape[1]
            for row, interval in zip(
                _rows(columns, regression, fitted, p_values, p_kinds), intervals, strict=True
            ):
                yield {
                    **row,
                    "effect": interval.mean,
                    "lower": interval.lower,
                    "upper": interval.upper,
                }


def all_regressions(rows: pd.DataFrame, treated: str) -> list[Regression]:
    settings = [table for _, table in rows.groupby(kinds.OF_SETTING, sort=True)]
    on_densities = [each for table in settings for each in _on_densities(table)]
    return [_on_leaks(settings[0], treated), *on_densities]


def _intercepts(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """The random intercepts; a string of several seeds has one level for each seed as well."""
    return random_intercepts(
        {
            "length": rows["length"],
            "group": rows["group"],
            "string": rows["string_id"],
            "string_of_seed": rows.groupby(["seed", "string_id"]).ngroup(),
            "run": rows.groupby(["seed", "variant"]).ngroup(),
            "seed": rows["seed"],
        }
    )


def _on_leaks(rows: pd.DataFrame, treated: str) -> Regression:
    """The leak condition: a copy, and paraphrases as an ordered category (A.5.1)."""
    is_treated = (rows["string_role"] == treated).to_numpy()
    exact = rows["n_copies"].to_numpy() * is_treated
    paraphrases = rows["paraphrases"].to_numpy() * is_treated
    polynomials = {name: values[paraphrases] for name, values in POLYNOMIALS.items()}
    columns = {
        "regression": kinds.LEAK_CONDITION,
        **dict.fromkeys(["predictor", *kinds.OF_SETTING]),
    }
    return Regression(columns, {EXACT: exact.astype(float), **polynomials})


def _on_densities(rows: pd.DataFrame) -> list[Regression]:
    """Density, raw and log, alone (A.5.2) and with the distance (A.5.3); `rows` are `in_units`."""
    found, setting = [], rows.iloc[0][kinds.OF_SETTING].to_dict()
    distance, length = rows["distance"].to_numpy(), of_length(rows["length"])
    for predictor in PREDICTORS:
        for name, more in ((kinds.ON_DENSITY, {}), (kinds.ON_BOTH, {DISTANCE: distance})):
            columns = {"regression": name, "predictor": predictor, **setting}
            found.append(
                Regression(columns, {DENSITY: rows[predictor].to_numpy(), **more, **length})
            )
    return found


def of_length(lengths: pd.Series) -> dict[str, np.ndarray]:
    values = standardised(np.log(lengths.to_numpy(dtype=float)))
    return {LOG_LENGTH: values} if values.any() else {}


def in_form(log_density: pd.Series, form: str, magnitude: float | None = None) -> np.ndarray:
    """The standardised density (`raw`), or its logarithm (`log`).

    A density is divided by the highest one first. Standardising undoes this, and a density that is
    too small for a number does not become 0 with all others. All are 0 if log densities of this
    magnitude (see `rounding.is_flat`) do not vary.
    """
    values = log_density.to_numpy(dtype=float)
    if is_flat(values, magnitude):
        return np.zeros(len(values))
    return standardised(np.exp(values - values.max()) if form == RAW else values)


def standardised(values: ArrayLike, magnitude: float | None = None) -> np.ndarray:
    """Values float[n] with mean 0 and standard deviation 1; all 0 if they do not vary.

    `magnitude` is that of `rounding.is_flat`.
    """
    values = np.asarray(values, dtype=float)
    centred = values - values.mean()
    spread = centred.std()
    return np.zeros(len(values)) if is_flat(values, magnitude) else centred / spread


def regress_text(density: pd.DataFrame) -> pd.DataFrame:
    """Regressions of perplexity on density, on distance, and on both, for each set of queries.

    The outcome is the perplexity of the query or, for queries with responses, of the response.

    The density is the local part, as in the paper, or the exact one without an approximation. With
    an approximation, the random part has a regression, too, because the paper finds the opposite
    trend for the random part (section 6.2). The random intercepts are the length and, unlike in the
    paper, the document: windows of one text overlap and are about the same things. Hardly two
    queries have the same number of characters, so lengths are put into at most 20 bins with equally
    many queries, at least 10 each. The log length is a term as well, unlike in the paper: a random
    intercept assumes that density does not depend on length. Where density does, 22 % of texts
    without an effect had a p-value below 5 %, and 3 % with the term
    (tests/benchmarks/bench_regressions.py). All perplexities are used, also very high ones, which
    the paper drops only from its figures.

    `density` is a table of kind `text_density` of one text. The result is empty without
    perplexities. Estimates are null where densities or distances differ by rounding in float32
    only. P-values are Satterthwaite's, because a query has only one row.

    Raises `UserError` if columns are missing, or if the table is of several texts.
    """
    _check_table(density, kinds.TEXT_DENSITY, ["language"])
    rows = []
    for name, queries in density.groupby("query_set", sort=False):
        for outcome, column in kinds.OUTCOMES_OF_TEXT.items():
            about = {"language": queries["language"].iloc[0], "query_set": name, "outcome": outcome}
            known = queries[queries[column].notna()]
            rows += [about | row for row in _of_outcome(known, column)]
    return _tabulated(rows, kinds.TEXT_REGRESSIONS)


def _of_outcome(known: pd.DataFrame, column: str) -> Iterator[dict]:
    """The rows of the regressions of one column on the queries of one set."""
    known = known.sort_values([*kinds.OF_SETTING, "segment_id"], kind="stable", ignore_index=True)
    for place, (_, table) in enumerate(known.groupby(kinds.OF_SETTING, sort=True)):
        asked = regressions_of_text(table)
        values = table[column].to_numpy(dtype=float)
        intercepts = random_intercepts(
            {"length": length_bins(table["n_characters"].to_numpy()), "document": table["document"]}
        )
        # The distance has no kernel, so one regression on it is enough.
        for regression in asked if place == 0 else asked[:-1]:
            terms = np.column_stack(list(regression.terms.values()))
            fitted = fit(values, terms, intercepts)
            p_kinds = [SATTERTHWAITE] * (1 + terms.shape[1])
            yield from _rows(regression.columns, regression, fitted, fitted.p_values, p_kinds)


def regressions_of_text(rows: pd.DataFrame) -> list[Regression]:
    """The regressions of the queries at one kernel and bandwidth; the last is on distance."""
    has_parts = rows["log_local"].notna().all()
    density = rows["log_local"] if has_parts else rows["log_density"]
    own = rows.assign(length=rows["n_characters"])
    kernel, bandwidth = rows.iloc[0][["kernel", "bandwidth"]]
    magnitudes = of_log_density(kernel, bandwidth), OF_DISTANCE
    asked = _on_densities(in_units(own.assign(log_density=density), *magnitudes))
    if has_parts:
        in_random = in_units(own.assign(log_density=rows["log_random"]), *magnitudes)
        asked += [
            each._replace(columns=each.columns | {"regression": kinds.ON_RANDOM})
            for each in _on_densities(in_random)
            if each.columns["regression"] == kinds.ON_DENSITY
        ]
    return [*asked, _on_distance(own)]


def _on_distance(rows: pd.DataFrame) -> Regression:
    """The distance alone (A.9)."""
    columns = {"regression": kinds.ON_DISTANCE, **dict.fromkeys(["predictor", *kinds.OF_SETTING])}
    columns["embedding"] = rows["embedding"].iloc[0]
    distance = {DISTANCE: standardised(rows["mean_distance"], OF_DISTANCE)}
    return Regression(columns, {**distance, **of_length(rows["length"])})


def length_bins(lengths: np.ndarray) -> np.ndarray:
    """The bin int[n] of each length; bins hold about equally many, and equal lengths share one."""
    n_bins = min(MOST_BINS, len(lengths) // FEWEST_IN_BIN)
    if n_bins < 2:
        return np.zeros(len(lengths), dtype=int)
    edges = np.quantile(lengths, np.arange(1, n_bins) / n_bins, method="inverted_cdf")
    return np.searchsorted(np.unique(edges), lengths)


def _rows(columns: dict, regression: Regression, fitted: Fit, p_values, p_kinds) -> Iterator[dict]:
    """One row per fixed effect; the numbers of a fit without convergence are NaN."""
    unknown = np.full(len(p_values), np.nan)
    of_fit = {
        "estimate": fitted.estimates,
        "std_error": fitted.std_errors,
        "df": fitted.df,
        "statistic": fitted.statistics,
        "model_p_value": fitted.p_values,
    }
    numbers = {n: v if fitted.converged else unknown for n, v in of_fit.items()}
    numbers["p_value"] = p_values
    for place, term in enumerate([INTERCEPT, *regression.terms]):
        yield {
            **columns,
            "term": term,
            **{name: values[place] for name, values in numbers.items()},
            "p_kind": p_kinds[place],
            "converged": fitted.converged,
            "singular": fitted.singular,
            "n_rows": len(fitted.fitted),
        }


def _tabulated(rows: list[dict], kind: Kind) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=kind.names)


def _check(leakage: pd.DataFrame, seed: int) -> None:
    """Raise `UserError` if the table is not the whole factorial of one study."""
    _check_table(leakage, kinds.LEAKAGE, STUDY)
    _check_values(leakage)
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise UserError(f"seed {seed!r}: the seed of exchanges must be a whole number, 0 or more")
    if missing := sorted({*kinds.TESTED} - {*leakage["string_role"]}):
        raise _error(
            kinds.LEAKAGE,
            f"no rows of strings that are {missing[0]!r}; regressions compare leaked, placebo and "
            "never strings: raise `tests` in density/leakage",
        )
    n_runs = leakage["variant"].nunique()
    units = leakage.groupby([*kinds.OF_SETTING, "seed", "string_id"])
    counts = units["variant"].agg(["nunique", "size"])
    wrong = counts[(counts["nunique"] != n_runs) | (counts["size"] != n_runs)]
    per_setting = leakage.groupby(kinds.OF_SETTING)["string_id"].size()
    if len(wrong) or per_setting.nunique() > 1:
        key = (wrong if len(wrong) else counts).index[0]
        raise _error(
            kinds.LEAKAGE,
            f"string {key[-1]} of seed {key[-2]} has {counts.loc[key, 'size']} rows for embedding "
            f"{key[0]!r}; every string needs one row in each of the {n_runs} runs: make the table "
            "again from all runs of the factorial",
        )


def _check_values(leakage: pd.DataFrame) -> None:
    numbers = {
        "length": lambda x: x > 0,
        "n_copies": lambda x: (x >= 0) & (x <= MOST_COPIES),
        "paraphrases": lambda x: (x >= 0) & (x <= MOST_PARAPHRASES),
        "perplexity": np.isfinite,
        "answer_right": lambda x: (x == 0) | (x == 1),
        "log_density": lambda x: x < np.inf,
        "mean_distance": np.isfinite,
    }
    if leakage["answer_right"].isna().all():  # a language without right answers
        del numbers["answer_right"]
    for name, is_allowed in numbers.items():
        values = pd.to_numeric(leakage[name], errors="coerce").astype(float)
        wrong = leakage[~is_allowed(values.to_numpy())]
        if len(wrong):
            row = wrong.iloc[0]
            raise _error(
                kinds.LEAKAGE,
                f"string {row['string_id']} of seed {row['seed']} has {row[name]} as {name!r}, "
                "which no regression can use; make the table again",
            )
    roles = leakage.groupby(["seed", "string_id"])["string_role"].nunique()
    if (roles > 1).any():
        seed, name = roles.index[roles > 1][0]
        raise _error(
            kinds.LEAKAGE,
            f"string {name} of seed {seed} has several values of 'string_role'; a string is "
            "leaked, a placebo or never leaked in all runs: make the table again",
        )


def _check_table(table: pd.DataFrame, kind: Kind, of_one: list[str]) -> None:
    """`UserError` if a column or all rows are missing, or if a column `of_one` has two values."""
    if missing := [name for name in kind.names if name not in table.columns]:
        raise _error(kind, f"no column {missing[0]!r}; it needs: {', '.join(kind.names)}")
    if table.empty:
        raise _error(kind, "no rows; regressions need at least one")
    for name in of_one:
        if len(found := sorted(map(str, table[name].unique()))) > 1:
            several = f"several values of {name!r}: {', '.join(found)}"
            raise _error(kind, f"{several}; regress each of them alone")


def _error(kind: Kind, what: str) -> UserError:
    return UserError(f"table of kind {kind.name}: {what}")

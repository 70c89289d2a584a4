"""What single fields of a text lose without the text: planted losses, and real trainings."""

import numpy as np
import pandas as pd
import pytest

from helpers.atlas_worlds import trace_of
from helpers.commands import MODELS, ROOT
from palimpsest import manifests, tables, token_losses, traces
from palimpsest.atlas import kinds
from palimpsest.atlas.fields import field_table
from palimpsest.atlas.removed_tokens import removed_tokens
from palimpsest.atlas.truth import truth_tables
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.choices import placebos_of
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.jobs.query import QueryFiles
from palimpsest.languages import Grammar, field_losses
from palimpsest.regimes import SINGLE, Removals
from palimpsest.token_losses import TokenLosses
from palimpsest.training.recipe import Recipe

PEOPLE = ROOT / "config/languages/people.pcfg"
SIZE, TESTS = 6, 5
KEYS = ["model", "language", "size", "seed"]


@pytest.fixture(scope="module")
def strings() -> pd.DataFrame:
    return build(Sampler("people", read_corpus(PEOPLE), 0), "base", SIZE, TESTS, False)


def tokens_of_letters(strings: pd.DataFrame) -> TokenLosses:
    """A run in which each letter is a token."""
    lengths = strings["text"].map(len).to_numpy()
    cut = strings.assign(n_tokens=lengths)
    trace = trace_of(cut, "base", np.ones((3, len(cut))), 0)
    return TokenLosses(
        {**trace.run, "language": "people"},
        trace.epochs,
        trace.string_ids,
        lengths,
        np.ones((3, lengths.sum())),
        np.concatenate([np.arange(1.0, n + 1) for n in lengths]),
    )


def test_the_rises_of_letters_are_summed_by_field(strings):
    """Each letter loses what is planted for it; the placebo loses a tenth of a nat a letter."""
    losses = tokens_of_letters(strings)
    chance = np.random.default_rng(0)
    trained = strings.loc[strings["count"] > 0, "string_id"]
    texts = strings.set_index("string_id")["text"]
    rises = {name: chance.random(len(texts[name])) for name in trained}
    rows = []
    for again, factor in ((False, 1.0), (True, 2.0)):
        for name, placebo in zip(trained, placebos_of(strings, trained), strict=True):
            rows += [
                (again, None, name, -np.ones(len(texts[name]))),
                (again, None, placebo, -np.ones(len(texts[placebo]))),
                (again, name, name, -1 - factor * rises[name]),
                (again, name, placebo, np.full(len(texts[placebo]), -1.1)),
            ]
    columns = ["again", "removed", "string_id", "log_probs"]
    about = {key: losses.run[key] for key in KEYS}
    found = field_table(
        [losses], [strings], pd.DataFrame(rows, columns=columns).assign(**about), PEOPLE, False
    )
    assert list(found.columns) == kinds.FIELDS.names
    own = found.groupby("string_id")
    for name, rows in own:
        assert rows["field_influence"].sum() == pytest.approx(rises[name].sum())
        spans = field_losses(Grammar.from_file(PEOPLE), [texts[name]])
        of_fields = rows.dropna(subset=["field"]).set_index("field")
        assert set(of_fields.index) == set(spans["field"])
        for span in spans.itertuples():
            row = of_fields.loc[span.field]
            expected = rises[name][span.begin : span.end].sum()
            assert row["field_influence"] == pytest.approx(expected)
            assert row["field_influence_again"] == pytest.approx(2 * expected)
            assert row["optimal"] == pytest.approx(span.optimal_nll, abs=1e-6)
            assert row["begin"] == span.begin
            assert row["determined"] == (span.optimal_nll < 1e-6)
            assert row["loss"] == span.end - span.begin
    phones = found[found["field"] == "PHONE"]
    assert phones["placebo_field_influence"].to_numpy() == pytest.approx(0.8)  # 8 letters
    towns = found[found["field"] == "TOWN"]["placebo_field_influence"]
    assert towns.isna().any() or (towns > 0.2).all()


@pytest.fixture(scope="module")
def made(strings, tmp_path_factory):
    """A run, its removals, and the losses of tokens without each string."""
    folder = tmp_path_factory.mktemp("fields")
    tables.write(folder / "strings.parquet", strings, STRINGS)
    recipe = Recipe(3e-3, epochs=8, batch_size=3, evaluate_every=8, checkpoint_every=0)
    state = str(folder / "state")
    asked = Assignment("opt-125m-twin", str(MODELS), str(PEOPLE), recipe, "fleet", state)
    jobs = []
    regimes = {"base": SINGLE, "removals": Removals(3, 6), "again": Removals(3, 6, again=True)}
    for name, regime in regimes.items():
        (folder / name).mkdir()
        names = ("trace.parquet", "manifest.json", "weights.safetensors")
        files = (str(folder / name / file) for file in names)
        tokens = str(folder / name / "tokens.parquet") if regime is SINGLE else None
        jobs.append(Job(str(folder / "strings.parquet"), *files, regime=regime, tokens=tokens))
    finetune(asked, jobs)
    table = str(folder / "removed_tokens.parquet")
    files = QueryFiles(
        jobs[0].dataset, [job.weights for job in jobs], (table,), str(folder / "removed.json")
    )
    removed_tokens.query.run([files], {}, asked)
    return jobs, tables.read(table, kinds.REMOVED_TOKENS), folder


def test_losses_of_tokens_are_those_of_the_traces(made):
    jobs, found, folder = made
    for job, again in zip(jobs[1:], (False, True), strict=True):
        runs = {run.run["variant"]: run for run in traces.read_all(job.trace)}
        rows = found[(found["again"] == again) & found["removed"].notna()]
        assert rows["removed"].nunique() == 3
        for row in rows.itertuples():
            run = runs[f"without-{row.removed}"]
            nll = run.nll[-1, run.column_of([row.string_id])[0]]
            assert -row.log_probs.sum() == pytest.approx(nll, rel=1e-4)
    whole = traces.read(jobs[0].trace)
    rows = found[~found["again"] & found["removed"].isna()].set_index("string_id")["log_probs"]
    nll = whole.nll[-1, whole.column_of(rows.index)]
    np.testing.assert_allclose([-values.sum() for values in rows], nll, rtol=1e-4)
    assert len(manifests.read(folder / "removed.json")["weights"]) == 3


def test_the_fields_of_a_text_sum_to_its_exact_self_influence(made, strings):
    """By retraining, in real trainings of a twin on texts; the placebos are those of the truth."""
    jobs, found, _ = made
    losses, trace = token_losses.read(jobs[0].tokens), traces.read(jobs[0].trace)
    removals, again = (traces.read_all(job.trace) for job in jobs[1:])
    table = field_table([losses], [strings], found, PEOPLE, False)
    truth = truth_tables([trace], [strings], [removals], [again], "after_last_miss")["retrained"]
    exact = truth.set_index("string_id")
    n_tokens = pd.Series(trace.n_tokens, trace.string_ids)
    of_strings = table.groupby("string_id")
    for column, expected in (
        ("field_influence", "self_influence"),
        ("field_influence_again", "self_influence_again"),
    ):
        sums = of_strings[column].sum() / n_tokens
        np.testing.assert_allclose(sums[exact.index], exact[expected], atol=1e-4)
    assert (exact["self_influence"].abs() > 1e-3).all()

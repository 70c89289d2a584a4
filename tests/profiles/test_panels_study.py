"""Several panels as one study: effects with errors over units, correlations, verdicts, figures."""

import warnings

import numpy as np
import pandas as pd
import pytest

from helpers import panel_worlds as worlds
from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest import profiles, tables
from palimpsest.claims import judge_all
from palimpsest.errors import UserError
from palimpsest.profiles import effects
from palimpsest.profiles.claims import CLAIMS
from palimpsest.profiles.claims.panel_statistics import in_every_pair
from palimpsest.profiles.comparable import check_comparable
from palimpsest.profiles.effects import part_of
from palimpsest.profiles.panel import Panel, to_panel
from palimpsest.profiles.panel_correlation import correlations
from palimpsest.profiles.panel_files import panels
from palimpsest.profiles.panels_study import STUDY_KINDS, effect_rows, tables_of
from palimpsest.profiles.panels_study import study as study_of_files

SAME = "In panels, the profile of the smaller model predicts that of the larger one."
OF_PANELS = [claim.claim for claim in CLAIMS if claim.question == "profile_panels"]
VERDICTS = [claim for claim in OF_PANELS if claim != SAME]
SMALLEST = "In panels, no memorisation persists in the smallest model."
PLATEAU = "In panels, memorisation falls to a plateau."
EARLY = "In panels, strings are memorised more just after training if they are seen early."
LATE = "In panels, strings that were seen late are memorised more at the end."
STRONGER = "In panels, larger models memorise strings more strongly just after training."
PERSISTS = "In panels, memorisation persists more in larger models."


@pytest.fixture(scope="module")
def study():
    return worlds.as_the_paper_saw()


@pytest.mark.parametrize("kind", STUDY_KINDS, ids=lambda kind: kind.name)
def test_a_table_is_of_its_kind(study, tmp_path, kind):
    tables.write(tmp_path / "table.parquet", study[kind.name], kind)
    assert len(tables.read(tmp_path / "table.parquet", kind)) == len(study[kind.name]) > 0


def test_parts_are_means_of_the_estimated_cells():
    """The same numbers as means over the cells of the estimator."""
    panel = to_panel(worlds.panel_frame(worlds.falling(1.0, 0.5)))
    cells = profiles.difference_in_differences(panel).set_index(["cohort", "time"])["estimate"]
    since = {key: key[1] - key[0] for key in cells.index}

    def mean(chosen):
        return cells[[key for key in cells.index if chosen(*key)]].mean()

    expected = {
        "instantaneous": mean(lambda g, c: c == g),
        "persistent": mean(lambda g, c: c > g),
        "residual": mean(lambda g, c: c == worlds.TIMES - 1),
        "instantaneous_order": mean(lambda g, c: c == g and g > 4)
        - mean(lambda g, c: c == g and g <= 4),
        "residual_order": mean(lambda g, c: c == 11 and g > 4)
        - mean(lambda g, c: c == 11 and g <= 4),
    }
    for part, value in expected.items():
        assert part_of(panel, part).value == pytest.approx(value, abs=1e-12)
    # Cohorts 1 to 5 have six later times or more.
    fading, fallen = [], []
    for g in range(1, 6):
        last = worlds.TIMES - 1 - g
        late = [cells[key] for key in cells.index if key[0] == g and since[key] > 2 * last / 3]
        middle = [
            cells[key]
            for key in cells.index
            if key[0] == g and last / 3 < since[key] <= 2 * last / 3
        ]
        fading.append(np.mean(late) - np.mean(middle))
        just_after = cells[g, g]
        fallen.append(np.mean(late) - just_after)
    assert part_of(panel, "fading").value == pytest.approx(np.mean(fading), abs=1e-12)
    assert part_of(panel, "fallen").value == pytest.approx(np.mean(fallen), abs=1e-12)


def test_an_interval_is_welchs_on_two_groups():
    """Of one cohort just after its treatment: the t-test of two samples of changes."""
    from scipy.stats import ttest_ind

    chance = np.random.default_rng(3)
    outcome = chance.normal(size=(30, 2)) * np.where(np.arange(30) < 9, 1, 3)[:, None]
    panel = Panel(np.array([0.0, 1.0]), np.where(np.arange(30) < 9, 1, np.inf), outcome)
    found = part_of(panel, "instantaneous").interval()
    change = np.diff(outcome, axis=1)[:, 0]
    expected = ttest_ind(change[:9], change[9:], equal_var=False)
    lower, upper = expected.confidence_interval(0.95)
    assert found.degrees == pytest.approx(expected.df)
    assert (found.lower, found.upper) == (pytest.approx(lower), pytest.approx(upper))


def test_a_difference_of_panels_on_the_same_strings_is_sharper():
    """What both models have in common drops out; of other strings, the variances add up."""
    effect = {"small": worlds.falling(0.5, 0.5), "large": worlds.falling(1.0, 0.5)}

    def error(seeds):
        made = worlds.study_of(effect, seeds, noise=0.02)["panels_effects"]
        rows = made[(made["compared"] == "pair") & (made["string_role"] == "trained")]
        return rows.set_index("part").loc["persistent", "std_error"]

    assert error({"small": 0, "large": 0}) < 0.5 * error({"small": 0, "large": 1})


def test_intervals_hold_the_truth():
    """In 200 worlds, 95 % of the intervals of a difference of two panels, and of placebos."""
    chance, n_times, sizes = np.random.default_rng(7), 5, (6, 9, 12, 20)
    cohorts = np.repeat([1.0, 2.0, 3.0, np.inf], sizes)
    inside, of_placebos = [], []
    for _ in range(200):
        common = np.cumsum(chance.normal(size=(len(cohorts), n_times)), axis=1)
        pair = []
        for strength in (1.0, 2.5):
            own = common + chance.normal(size=common.shape)
            own += strength * (np.arange(n_times) >= cohorts[:, None])
            pair.append(Panel(np.arange(float(n_times)), cohorts, own))
        for held, truth, made in (
            (inside, 1.5, pair),
            (of_placebos, 0.0, [effects.placebos(one, np.array([1.0, 2.0])) for one in pair]),
        ):
            small, large = (part_of(one, "persistent") for one in made)
            found = effects.difference_of(large, small).interval()
            held.append(found.lower <= truth <= found.upper)
    # Of 200 intervals at 95 %, 181 to 198 hold the truth in 99.9 % of such counts.
    assert 181 <= sum(inside) <= 198
    assert 181 <= sum(of_placebos) <= 198


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("part", effects.ORDERS)
def test_intervals_of_the_order_hold_no_order(part, spread):
    """Cohorts differ by chance, in both panels alike, and few units never treated are shared."""
    held = []
    for study in range(200):
        chance = np.random.default_rng([study, 8])
        cohorts, times = np.repeat([*range(1, 9), np.inf], [24] * 8 + [40]), np.arange(10.0)
        steps = 0.3 * chance.normal(size=(2, len(cohorts), len(times)))
        outcome = np.cumsum(steps, axis=2) + steps[0]  # the first is common to both
        levels = np.repeat([*(1 + spread * chance.normal(size=8)), 0], [24] * 8 + [40])
        outcome = outcome + levels[:, None] * (times >= cohorts[:, None])
        names = np.arange(len(cohorts)).astype(str)
        pair = [Panel(times, cohorts, own, units=names) for own in outcome]
        found = effects.mean([part_of(one, part) for one in pair]).interval()
        held.append(found.lower <= 0 <= found.upper)
    # Of 200 intervals at 95 %, 179 or more hold the truth in 99.9 % of such counts. Without errors
    # that cohorts share, the spread within halves is a little conservative.
    assert sum(held) >= 179


def test_an_interval_of_the_order_is_welchs_over_cohorts():
    """Of units without errors: the t-test of two samples of cohorts."""
    from scipy.stats import ttest_ind

    levels = {1: 0.3, 2: 0.9, 3: 0.5, 4: 0.2, 5: 0.8, 6: 0.1}
    frame = worlds.panel_frame(lambda g, d: levels.get(g, 0))
    frame = frame[(frame["cohort"] < 7) | frame["cohort"].isna()]
    frame["outcome"] = np.where(
        frame["time"] >= frame["cohort"], frame["cohort"].map(levels), frame["time"] / 7
    )
    frame["outcome"] += np.where(frame["time"] >= frame["cohort"], frame["time"] / 7, 0)
    found = part_of(to_panel(frame), "instantaneous_order").interval()
    of_cohorts = [levels[g] for g in (4, 5, 6)], [levels[g] for g in (1, 2, 3)]
    expected = ttest_ind(*of_cohorts, equal_var=False)
    assert found.degrees == pytest.approx(expected.df)
    assert (found.lower, found.upper) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_few_cohorts_have_no_order():
    """Of three cohorts, the spread within a half is not known."""
    frame = worlds.panel_frame(worlds.falling(1.0, 0.5))
    few = to_panel(frame[(frame["cohort"] < 4) | frame["cohort"].isna()])
    assert all(part_of(few, part) is None for part in effects.ORDERS)


def test_common_errors_are_taken_out_of_correlations():
    """Two panels on the same strings, one with another profile: the plain correlation is wrong."""
    shape = {g: 1 + 0.2 * np.sin(2.0 * g) for g in worlds.SHAPE}

    def turned(cohort, since):
        return 0.3 * shape[(cohort + 3) % 8 + 1] * (0.5 if since else 1.0)

    def straight(cohort, since):
        return 0.3 * shape[cohort] * (0.25 + 0.05 * cohort if since else 1.3 - 0.1 * cohort)

    cells = [(g, c) for g in worlds.SHAPE for c in range(g, worlds.TIMES)]
    truth = np.corrcoef([[f(g, c - g) for g, c in cells] for f in (straight, turned)])[0, 1]
    held, plain, corrected = [], [], []
    for seed in range(40):
        made = {
            name: to_panel(worlds.panel_frame(f, seed, 0.1, model))
            for model, (name, f) in enumerate({"one": straight, "other": turned}.items())
        }
        after, before = correlations(made)
        held += [after["lower"] <= truth <= after["upper"], before["lower"] <= 0 <= before["upper"]]
        plain.append(after["correlation"])
        corrected.append(after["corrected"])
    assert sum(held) >= 72
    assert abs(np.mean(corrected) - truth) < 0.025 < np.mean(plain) - truth


def faded(seed, other):
    """A row of two panels with levels of cohorts by chance, and its true value within lags."""
    levels = [np.random.default_rng([seed, n]).normal(size=9) for n in (1, other)]
    of = [
        lambda cohort, since, own=own: (1 + 0.3 * own[cohort]) * (0.15 + 0.85 * 0.5**since)
        for own in levels
    ]
    made = {
        name: to_panel(worlds.panel_frame(effect, seed, 0.05, model))
        for model, (name, effect) in enumerate(zip("ab", of, strict=True))
    }
    cells = [(g, c - g) for g in worlds.SHAPE for c in range(g, worlds.TIMES)]
    known = pd.DataFrame([[effect(*cell) for effect in of] for cell in cells])
    left = known - known.groupby([since for _, since in cells]).transform("mean")
    return {**next(correlations(made)), "truth": left.corr().iloc[0, 1]}


def test_effects_that_only_fade_alike_are_not_alike_within_lags():
    """Each cohort has a level of its own in each model: 0.8 as estimated, about 0 within lags."""
    other = pd.DataFrame([faded(seed, 2) for seed in range(20)])
    assert other["corrected"].mean() > 0.75
    assert abs(other["within_lags"].mean()) < 0.25
    # At 95 %, 15 or more of 20 hold the truth in 99.9 % of such counts.
    assert other["truth"].between(other["within_lower"], other["within_upper"]).sum() >= 15
    same = faded(0, 1)
    assert 0.9 < same["within_lower"] <= same["within_lags"]


def test_panels_without_common_cells_have_no_correlation():
    """As those with other times; a pair of them has no difference either."""
    frame = worlds.panel_frame(worlds.falling(1.0, 0.5))
    later = frame.assign(time=frame["time"] + 100, cohort=frame["cohort"] + 100)
    made = {"one": to_panel(frame), "other": to_panel(later)}
    assert all(np.isnan(row["corrected"]) and row["n_cells"] == 0 for row in correlations(made))
    assert not [row for row in effect_rows(made) if row["compared"] == "pair"]


def verdicts(study):
    judged = judge_all(CLAIMS, study)
    return judged[judged["question"] == "profile_panels"].set_index(["claim", "language"])


def test_verdicts_where_all_is_as_the_paper_saw(study):
    found = verdicts(study)
    assert set(found["verdict"]) == {"agrees"}
    assert {claim for claim, _ in found.index} == {*VERDICTS, SAME}
    pairs = ["70m and 410m", "70m and 12b", "410m and 12b"]
    assert found.loc[SAME].index.tolist() == pairs
    assert found.loc[(SMALLEST, "70m"), "interval_over"] == "strings"


def test_verdicts_where_nothing_is_as_the_paper_saw():
    """Sizes the other way round, late strings first, no plateau, and profiles that differ."""

    def growing(strength):
        return lambda cohort, since: strength * (1 + cohort / 8) * (1 + 0.4 * since)

    def falling_late(strength):
        return lambda cohort, since: strength * (3 - cohort / 4) * max(0.0, 1 - since / 20)

    effects_of = {"70m": growing(2.0), "410m": growing(1.0), "12b": falling_late(0.3)}
    found = verdicts(worlds.study_of(effects_of, noise=0.01))["verdict"]
    falsified = [claim for claim in VERDICTS if "late are memorised more" not in claim]
    for claim in falsified:
        assert set(found.loc[claim]) == {"disagrees"}, claim
    assert found.loc[SAME].to_dict()["70m and 410m"] == "agrees"
    assert found.loc[SAME].to_dict()["410m and 12b"] == "disagrees"


def with_levels(study, spread, order=0.0):
    """Two panels in which cohorts differ by chance, and by `order` from one to the next."""
    chance = np.random.default_rng(1000 + study)
    levels = 1 + spread * chance.normal(size=9) + order * (np.arange(9) - 4.5)
    effects_of = {
        name: lambda g, d, n=n: n * levels[g] * (1 if d == 0 else 0.5)
        for n, name in enumerate(("70m", "410m"), start=1)
    }
    study = worlds.effects_of_panels(effects_of, study)
    return judge_all(CLAIMS, {"panels_effects": study}).set_index("claim")["verdict"]


def test_cohorts_that_differ_by_chance_have_no_order():
    """Over strings alone, 49 of 60 such studies had a verdict."""
    found = [with_levels(study, 0.2) for study in range(20)]
    for claim in (EARLY, LATE):
        # At an error rate of 5 %, 15 or more of 20 are open in 99.9 % of such counts.
        assert [verdicts_of[claim] for verdicts_of in found].count("cannot tell") >= 15, claim


def test_an_order_beyond_chance_is_found():
    late, early = with_levels(0, 0.05, order=0.2), with_levels(1, 0.05, order=-0.15)
    assert (late[LATE], late[EARLY]) == ("agrees", "disagrees")
    assert (early[LATE], early[EARLY]) == ("disagrees", "agrees")


def judged(**effects_of):
    table = worlds.effects_of_panels(effects_of, 0)
    found = judge_all(CLAIMS, {"panels_effects": table}).set_index("claim")
    return found[found["question"] == "profile_panels"]


@pytest.mark.parametrize(
    ("effect", "verdict"),
    [
        (lambda g, d: 1.0, "disagrees"),
        (lambda g, d: 1.0 if d == 0 else 2.0, "disagrees"),
        (lambda g, d: 1.0 if d == 0 else 1.5 - 0.1 * d, "disagrees"),
        (lambda g, d: 0.4 + 0.6 * 0.4**d, "agrees"),
    ],
    ids=["constant", "doubles", "falls on", "falls to a plateau"],
)
def test_a_plateau_is_what_memorisation_falls_to(effect, verdict):
    found = judged(**{"70m": effect, "410m": lambda g, d: 2 * effect(g, d)})
    assert found.loc[PLATEAU, "verdict"] == verdict


def test_a_plateau_of_a_mean_is_none():
    """One panel rises at the end as the other one falls."""

    def left(slope):
        return lambda g, d: 1.0 if d == 0 else 0.5 + slope * (d - 5)

    row = judged(**{"70m": left(0.1), "410m": left(-0.1)}).loc[PLATEAU]
    assert row["verdict"] == "disagrees"


def test_sizes_are_compared_in_every_pair():
    """The smallest model alone is low; of the others, the larger ones memorise less."""
    sizes = {"70m": 0.2, "160m": 1.2, "410m": 1.1, "1b": 1.0}
    found = judged(**{name: lambda g, d, n=n: n for name, n in sizes.items()})
    for claim in (STRONGER, PERSISTS):
        assert found.loc[claim, "verdict"] == "disagrees"
        assert "smallest in 160m and 1b" in found.loc[claim, "note"]
    rising = judged(**{name: lambda g, d, n=n: n for n, name in enumerate(sizes, start=1)})
    assert set(rising.loc[[STRONGER, PERSISTS], "verdict"]) == {"agrees"}


def test_the_smallest_of_estimates_has_the_ends_of_all():
    """As `estimates.lowest`, of estimates with errors of their own; one that is missing tells."""
    pairs = [("a", "b", 1.0, 0.1), ("a", "c", 2.0, 1.0), ("b", "c", 1.5, 0.2)]
    table = pd.DataFrame(pairs, columns=["panel", "other", "estimate", "std_error"])
    table = table.assign(compared="pair", part="persistent", string_role="trained", degrees=1e9)
    more = table.iloc[[0]].assign(panel="c", compared="panel")
    table = pd.concat([table, more])
    found = in_every_pair(table, "persistent")
    assert found.mean == 1.0
    assert found.lower == pytest.approx(2 - 1.96, abs=1e-3)
    assert found.upper == pytest.approx(1 + 0.1 * 2.394, abs=1e-3)
    assert found.p_value == pytest.approx(0.0455, abs=1e-3)
    assert in_every_pair(table.iloc[1:], "persistent").values == ()


def test_the_smallest_of_estimates_of_0_is_seldom_judged():
    """At an error rate of 2.5 % on either side, with ten degrees of freedom."""
    chance, n, degrees = np.random.default_rng(0), 200, 10
    about = {"part": "persistent", "string_role": "trained"}
    names = pd.DataFrame({"panel": list("aabc"), "other": ["b", "c", "c", None]})
    names["compared"] = ["pair", "pair", "pair", "panel"]
    ends = []
    for _ in range(n):
        errors = np.sqrt(chance.chisquare(degrees, size=4) / degrees)
        values = chance.normal(size=4)
        table = names.assign(**about, estimate=values, std_error=errors, degrees=float(degrees))
        found = in_every_pair(table, "persistent")
        ends.append((found.lower > 0, found.upper < 0))
    # 13 or less of 200 are judged in 99.9 % of such counts.
    assert (np.sum(ends, axis=0) <= 13).all()


def test_early_strings_left_at_the_end_speak_against_recency():
    def early(cohort, since):
        return 3 - cohort / 4

    found = verdicts(worlds.study_of({"70m": early, "12b": early}, noise=0.01))["verdict"]
    assert set(found.loc[LATE]) == {"disagrees"}


def test_where_nothing_is_memorised_nothing_is_predicted():
    """Both models are measured on the same strings, so the plain correlation is high."""
    study = worlds.study_of(dict.fromkeys(("70m", "12b"), lambda cohort, since: 0.0))
    after = study["panels_correlation"].set_index("cells").loc["after"]
    assert after["correlation"] > 0.8
    found = verdicts(study)["verdict"]
    for claim in (SAME, SMALLEST, PLATEAU):
        assert set(found.loc[claim]) == {"cannot tell"}, claim


def test_without_panels_their_claims_have_no_rows():
    judged = judge_all(CLAIMS, {})
    assert not (judged["question"] == "profile_panels").any()


def test_cells_before_and_after_are_those_of_the_matrix(study):
    found = study["panels_correlation"]
    after = found[found["cells"] == "after"]
    assert (after["n_cells"] == sum(worlds.TIMES - g for g in worlds.SHAPE)).all()
    assert (after["n_shared"] == worlds.COHORTS * worlds.PER_COHORT + worlds.UNTREATED).all()
    assert (after["lower"] < after["corrected"]).all()
    assert (after["corrected"] < after["upper"]).all()


FILE = "config/panels/example.csv"


def asked(**named):
    return {"profiles": {"panels": named}}


@pytest.fixture
def _in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("_in_the_project")
def test_panels_are_in_the_order_of_their_sizes():
    """Or, without sizes, in that of the configuration; one panel alone is no study."""
    sizes = {"large": 12e9, "small": 70e6, "middle": 410e6}
    block = asked(**{name: {"file": FILE, "parameters": n} for name, n in sizes.items()})
    made = experiment(DEFAULT, command_line=block)
    assert list(panels(made.settings.block("profiles"))) == ["small", "middle", "large"]
    files = made.outputs["profiles"]
    assert "results/profiles/panels_study/panels/effects.parquet" in files
    made = experiment(DEFAULT, command_line=asked(large=FILE, small=FILE))
    assert list(panels(made.settings.block("profiles"))) == ["large", "small"]
    alone = experiment(DEFAULT, command_line=asked(large=FILE)).outputs["profiles"]
    assert not [file for file in alone if "panels_study" in file]


@pytest.mark.usefixtures("_in_the_project")
def test_some_sizes_without_others_are_refused():
    block = asked(large={"file": FILE, "parameters": 12e9}, small=FILE)
    assert (
        "profiles/panels/small: the key 'parameters' is missing, and large has it; give it to all "
        "panels, or to none"
    ) in message(lambda: experiment(DEFAULT, command_line=block))


def test_further_outcomes_are_estimated_by_themselves(tmp_path):
    """Figure 7 of the paper: a loss among them is turned, and the panel's own comes first."""
    from palimpsest.profiles.profile import of_panel_file

    frame = worlds.panel_frame(worlds.falling(1.0, 0.5))
    frame = frame.assign(log_likelihood=frame["outcome"], eval_loss=-2 * frame["outcome"])
    frame.drop(columns="outcome").to_parquet(tmp_path / "mine.parquet")
    columns = {"outcome": "log_likelihood"}
    made = of_panel_file(str(tmp_path / "mine.parquet"), "mine", columns, ["eval_loss"])
    by_outcome = dict(list(made["panel_profile"].groupby("outcome", sort=False)))
    assert list(by_outcome) == ["log_likelihood", "eval_loss"]
    one, other = (own["estimate"].to_numpy() for own in by_outcome.values())
    np.testing.assert_allclose(2 * one, other, atol=1e-9)
    assert [own["is_loss"].all() for own in by_outcome.values()] == [False, True]


def test_ten_steps_between_two_checkpoints_are_one_macro_batch():
    """As in the paper: ten batches of (1000, 2000] with ten strings each; one line says so."""
    chance = np.random.default_rng(0)
    steps = np.repeat(chance.choice(np.arange(1001, 2001), 10, replace=False), 10)
    cohorts = [*steps, *[np.nan] * 40]
    times = [0, 1000, 2000, 3000]
    frame = pd.DataFrame(
        {
            "unit": np.repeat([f"s{place}" for place in range(len(cohorts))], 4),
            "time": np.tile(times, len(cohorts)),
            "cohort": np.repeat(cohorts, 4),
            "outcome": chance.normal(size=4 * len(cohorts)),
        }
    )
    with pytest.warns(UserWarning, match="between two times") as said:
        panel = to_panel(frame)
    assert len(said) == 1
    assert panel.treated.tolist() == [2000]
    assert (panel.cohorts == 2000).sum() == 100
    cells = profiles.difference_in_differences(panel)
    assert sorted(cells["time"]) == times


def test_placebos_of_panels_with_the_same_strings_are_the_same():
    frames = [worlds.panel_frame(worlds.falling(s, 0.5)) for s in (0.5, 1.0)]
    one, other = (effects.placebos(to_panel(f), np.arange(1.0, 9)) for f in frames)
    assert (one.units == other.units).all()
    assert (one.cohorts == other.cohorts).all()
    assert np.isfinite(one.cohorts).sum() == worlds.UNTREATED // 2 // 24 * 24


def refused(one, other):
    """The message with which two panels are refused."""
    with pytest.raises(UserError) as raised:
        tables_of({"a": to_panel(one), "b": to_panel(other)}, None, None, "panels")
    return str(raised.value)


def test_panels_that_cannot_be_compared_are_refused():
    frame = worlds.panel_frame(worlds.falling(1.0, 0.5))
    assert "a and b have the same outcomes of all 312 common units at all 12 common" in refused(
        frame, frame
    )
    dates = {name: pd.to_datetime(frame[name], unit="D") for name in ("time", "cohort")}
    assert "a time of a is a number, and one of b is a date" in refused(
        frame, frame.assign(**dates)
    )
    other = frame.assign(cohort=frame["cohort"].replace({2.0: 3.0, 3.0: 2.0}))
    assert "unit 's24' is of cohort 2 in a, and of cohort 3 in b (48 such units)" in refused(
        frame, other
    )
    never = frame.assign(cohort=frame["cohort"].where(frame["unit"] != "s0"))
    assert "unit 's0' is of cohort 1 in a, and of cohort never in b (1 such units)" in refused(
        frame, never
    )


def test_outcomes_in_another_unit_are_said():
    frame = worlds.panel_frame(worlds.falling(1.0, 0.5))
    panels = {"a": to_panel(frame), "b": to_panel(frame.assign(outcome=frame["outcome"] * 50))}
    with pytest.warns(UserWarning, match="check that both panels have the same outcome in the"):
        check_comparable(panels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_comparable({**panels, "b": to_panel(frame.assign(outcome=frame["outcome"] * 3))})


def test_other_outcomes_are_not_compared(tmp_path):
    """A study takes the panel's own outcome, whose column has one name in all files."""
    frame = worlds.panel_frame(worlds.falling(1.0, 0.5))
    files = [str(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    for file, column in zip(files, ("log_likelihood", "token_accuracy"), strict=True):
        frame.rename(columns={"outcome": column}).to_parquet(file)
    columns = [{"outcome": "log_likelihood"}, {"outcome": "token_accuracy"}]
    with pytest.raises(UserError, match="that of b is 'token_accuracy'; a study compares one"):
        study_of_files(files, None, None, language="panels", names=["a", "b"], columns=columns)

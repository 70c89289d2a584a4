"""The section `density`: what it asks for, and blocks that are refused in one line."""

import itertools
import shutil
from pathlib import Path

import pytest

from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest.density import kinds, leakage, section
from palimpsest.density.interventions import LEAK_CONDITIONS, leaked

FACTORIAL = [leaked(leak) for leak in LEAK_CONDITIONS]
WRONG = {
    "an unknown model": (
        {"leakage": {"model": "llama-4-twin"}},
        "density/leakage/model: unknown model 'llama-4-twin'",
    ),
    "an unknown model of ordinary runs": (
        {"support": {"model": "opt-2b-twin"}},
        "density/support/model: unknown model 'opt-2b-twin'",
    ),
    "an unknown language": (
        {"leakage": {"languages": ["L3", "L9"]}},
        "density/leakage/languages[1]: unknown language 'L9'",
    ),
    "an unknown language of ordinary runs": (
        {"support": {"languages": ["L9"]}},
        "density/support/languages[0]: unknown language 'L9'",
    ),
    "a bandwidth that is shown and not estimated": (
        {"shown": {"bandwidth": 0.3}},
        "density/shown/bandwidth: 0.3 is not among the bandwidths in density/kernels/gaussian: "
        "0.1, 0.2, 0.5, 1.0; add it there, or choose one of them",
    ),
    "a bandwidth of the other kernel": (
        {"shown": {"kernel": "exponential", "bandwidth": 0.2}},
        "density/shown/bandwidth: 0.2 is not among the bandwidths in density/kernels/exponential: ",
    ),
    "too few test strings": (
        {"leakage": {"tests": 18}},
        "density/leakage/tests: 18 test strings are too few for 9 leaked ones and as many "
        "placebos; raise it above 18, so that some are never treated",
    ),
    "too many leaked strings": (
        {"leakage": {"leaked": 10}},
        "density/leakage/leaked: 10 strings with a copy and 3 paraphrases each are 40 of 72 "
        "training strings; at most half of them may be planted: lower it to 9",
    ),
    "more neighbours than training strings that are not planted": (
        {"neighbours": 37, "support": None},
        "density/neighbours: 37 is more than the 36 training strings that are not planted; lower",
    ),
    "more neighbours than training strings": (
        {"neighbours": 33, "leakage": None},
        "density/neighbours: 33 is more than the 32 training strings of density/support; lower it",
    ),
    "a sample that no corpus has": (
        {
            "leakage": None,
            "support": None,
            "approximation": {"k": 9, "m1": 20, "m2": 12, "index": "exact"},
        },
        "density/approximation/m2: 12 points cannot be drawn for a query: of the first sample of "
        "20, without 9 neighbours, 11 are left; lower it",
    ),
    "a bandwidth of zero": ({"kernels": {"gaussian": [0.1, 0.0]}}, "density/kernels/gaussian[1]"),
    "a bandwidth twice": ({"kernels": {"gaussian": [0.1, 0.1]}}, "density/kernels/gaussian"),
    "an unknown kernel": ({"kernels": {"box": [0.1]}}, "density/kernels"),
    "nothing is drawn again": ({"leakage": {"redrawn": 0}}, "density/leakage/redrawn"),
    "a level above the start symbol": ({"leakage": {"level": -1}}, "density/leakage/level"),
    "no string is leaked": ({"leakage": {"leaked": 0}}, "density/leakage/leaked"),
    "an unknown key": ({"leakage": {"copies": 2}}, "density/leakage: unknown key 'copies'"),
}


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def made_with(**block):
    """The default experiment with these values in the section's block."""
    return experiment(DEFAULT, command_line={"density": block})


def of_section(made):
    """The requests of the section."""
    (section,) = (each for each in made.sections if each.name == "density")
    return list(section.requests(made.settings))


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_block_is_refused_in_one_line(what):
    block, expected = WRONG[what]
    assert expected in message(lambda: made_with(**block))


@pytest.mark.parametrize(
    "block",
    [
        {"leakage": {"tests": 19}},
        {"leakage": {"leaked": 9}},
        {"neighbours": 36, "support": None},
        {"neighbours": 32, "leakage": None},
        {"shown": {"kernel": "exponential", "bandwidth": 0.05}},
    ],
)
def test_what_is_just_allowed_is_not_refused(block):
    assert made_with(**block).outputs["density"]


def in_languages(tmp_path, **files: str) -> dict:
    """A configuration whose languages are those of the project and some more."""
    folder = tmp_path / "languages"
    shutil.copytree("config/languages", folder)
    for name, text in files.items():
        name = name.replace("_", ".")
        Path(folder / name).write_text(text)
    return {"languages_folder": str(folder)}


@pytest.mark.parametrize("study", ["leakage", "support"])
def test_a_text_has_no_grammar(tmp_path, study):
    """Neither paraphrases nor exact probabilities."""
    languages = in_languages(tmp_path, notes_txt="a b c\n" * 200)
    over = {**languages, "density": {study: {"languages": ["notes"]}}}
    said = message(lambda: experiment(DEFAULT, command_line=over))
    assert f"density/{study}/languages[0]" in said
    assert (leakage if study == "leakage" else section).NEEDS in said


@pytest.mark.parametrize(("study", "n"), [("leakage", 120), ("support", 32)])
def test_a_language_of_few_strings_is_refused(tmp_path, study, n):
    """Training and test strings of a seed are different ones."""
    languages = in_languages(tmp_path, few_pcfg="S -> 'a' [0.5]\nS -> 'b' [0.5]\n")
    over = {**languages, "density": {study: {"languages": ["few"]}}}
    said = message(lambda: experiment(DEFAULT, command_line=over))
    assert f"density/{study}/size: {n} strings cannot be drawn for training from few" in said


def test_a_language_with_one_production_has_none_to_leave_out(tmp_path):
    """Its factorial is trained all the same."""
    digits = " ".join(["D"] * 12)
    rules = [f"S -> {digits} [1]", *(f"D -> '{n}' [0.1]" for n in range(10))]
    languages = in_languages(tmp_path, single_pcfg="\n".join(rules) + "\n")
    over = {**languages, "density": {"support": None, "leakage": {"languages": ["single"]}}}
    made = experiment(DEFAULT, command_line=over)
    assert [runs.variant for runs in of_section(made)] == FACTORIAL
    assert not [file for file in made.outputs["density"] if "left_out" in file]
    assert [file for file in made.outputs["density"] if "regressions" in file]


def test_every_condition_and_production_is_trained_in_every_seed():
    made = experiment(DEFAULT)
    asked = of_section(made)
    productions = [f"without-production-{n}" for n in (1, 2, 3, 4)]
    assert [runs.variant for runs in asked] == [*FACTORIAL, *productions, "base"]
    assert {runs.seeds for runs in asked} == {made.settings.seeds}
    block = made.settings.block("density")
    for runs in asked:
        own = block["support" if runs.variant == "base" else "leakage"]
        assert (runs.model, [runs.corpus], runs.size) == (
            own["model"], own["languages"], own["size"],
        )  # fmt: skip


def test_all_runs_keep_their_weights():
    """Also in the experiment, where requests of several sections are merged."""
    made = experiment(DEFAULT)
    assert all({"trace", "weights"} <= runs.keeps for runs in of_section(made))
    for runs in of_section(made):
        (merged,) = (
            other
            for other in made.single_runs
            if (other.model, other.corpus, other.size, other.variant)
            == (runs.model, runs.corpus, runs.size, runs.variant)
            and set(runs.seeds) <= set(other.seeds)
        )
        assert "weights" in merged.keeps


def test_training_jobs_are_apart():
    """One for each number of copies, one for the productions and one for ordinary training sets."""
    made = experiment(DEFAULT)
    own = {runs.variant for runs in of_section(made)}
    model = made.settings.block("density")["leakage"]["model"]
    jobs = [
        sorted({runs.variant for runs in job})
        for alike in made.training_jobs
        for job in alike
        if job[0].model == model and (job[0].corpus, job[0].size) in {("L3", 72), ("L4", 32)}
    ]
    by_copies = [
        sorted(leaked(leak) for leak in LEAK_CONDITIONS if leak.n_copies == n) for n in (0, 1)
    ]
    productions = [f"without-production-{n}" for n in (1, 2, 3, 4)]
    assert sorted(job for job in jobs if set(job) <= own) == sorted(
        [*by_copies, productions, ["base"]]
    )


def files_of(made, *names) -> list[str]:
    """The outputs of the section whose file has one of these names."""
    return [file for file in made.outputs["density"] if Path(file).stem in names]


def test_outputs_are_listed_once():
    made = experiment(DEFAULT)
    files = made.outputs["density"]
    assert len(files) == len(set(files))
    n_runs = len(made.settings.seeds) * (len(FACTORIAL) + 4 + 1)
    for name in ("embeddings", "density", "neighbours", "manifest"):
        assert len(files_of(made, name)) == n_runs
    for kind in (*kinds.OF_FACTORIAL, kinds.REGRESSIONS, kinds.LEFT_OUT):
        assert len(files_of(made, Path(kind.path).stem)) == 1, kind.name
    assert [Path(file).parts[-2] for file in files_of(made, "truth")] == ["leaked-0-0", "base"]
    (memorised,) = files_of(made, "memorised")
    assert Path(memorised).parts[-2] == "base"
    assert len(made.unfinished) >= n_runs


def test_a_study_without_left_out_productions():
    made = made_with(leakage={"leave_out": False})
    assert [runs.variant for runs in of_section(made)] == [*FACTORIAL, "base"]
    assert not files_of(made, "left_out")


def test_the_section_can_be_left_out():
    made = experiment(DEFAULT, command_line={"density": None})
    assert "density" not in made.outputs
    assert not [runs for runs in made.requests if runs.variant.startswith("leaked")]
    assert not [file for file in made.all_figures if "/density" in file]


def test_the_study_of_leakage_can_be_left_out():
    made = made_with(leakage=None)
    assert [runs.variant for runs in of_section(made)] == ["base"]
    of_factorial = [Path(k.path).stem for k in (*kinds.OF_FACTORIAL, kinds.REGRESSIONS)]
    assert not files_of(made, *of_factorial, "left_out")
    assert files_of(made, "truth")
    assert files_of(made, "memorised")


def test_the_study_of_support_can_be_left_out():
    made = made_with(support=None)
    assert "base" not in {runs.variant for runs in of_section(made)}
    assert not files_of(made, "memorised")
    assert [Path(file).parts[-2] for file in files_of(made, "truth")] == ["leaked-0-0"]


def test_both_studies_can_be_left_out():
    made = made_with(leakage=None, support=None)
    assert not made.outputs.get("density")
    assert not of_section(made)


def test_without_memorisation_there_is_no_start_to_compare_with():
    """Exact probabilities are there all the same."""
    made = experiment(DEFAULT, command_line={"memorisation": None, "unlearning": None})
    assert not files_of(made, "memorised")
    assert files_of(made, "truth")


def test_every_language_has_a_study():
    made = made_with(leakage={"languages": ["L3", "L4"]})
    found = {(runs.corpus, runs.variant) for runs in of_section(made)}
    assert found >= set(itertools.product(("L3", "L4"), FACTORIAL))
    assert len(files_of(made, "leakage")) == 2

"""An experiment: what its sections ask for and deliver, together."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from helpers.experiments import (
    DEFAULT,
    OF_FULL_MODELS,
    PAPER,
    ROOT,
    configuration,
    experiment,
    laid_over,
    message,
)
from palimpsest.configuration.messages import Mistake
from palimpsest.errors import UserError
from palimpsest.interventions import Intervention
from palimpsest.memorisation.section import SECTION as MEMORISATION
from palimpsest.memorisation.section import measured
from palimpsest.memorisation.studies import STUDIES, requested
from palimpsest.paths import DATASET, MANIFEST
from palimpsest.paths import TOKENS as RUN_TOKENS
from palimpsest.paths import TRACE as RUN_TRACE
from palimpsest.regimes import LEAVE_ONE_OUT, SINGLE, LeaveOneOut, Replicates
from palimpsest.requests import TOKENS, TRACE, WEIGHTS, Runs
from palimpsest.section import Derived, Section
from palimpsest.sections import NAMES
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind
from palimpsest.unlearning.run.jobs import jobs_of


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    """Paths of a configuration are relative to where Snakemake runs."""
    monkeypatch.chdir(ROOT)


def changed(**over):
    """The default experiment with other blocks laid over it."""
    return experiment(DEFAULT, command_line=over)


def only(*names):
    """The blocks of all other sections, left out."""
    return {name: None for name in NAMES if name not in names}


def of_studies(**studies):
    """The default experiment with other settings of its studies."""
    return changed(memorisation={"studies": studies})


def with_seeds(settings, *runs):
    """Runs of all seeds."""
    return [replace(one, seeds=settings.seeds) for one in runs]


# The grid and the studies


def test_the_default_experiment():
    """One twin per family, two languages, every study of twins; nothing needs a download."""
    default = experiment(DEFAULT)
    of_twins = [name for name in STUDIES if name not in OF_FULL_MODELS]
    assert [study.name for study in requested(default.settings)] == of_twins
    assert STUDIES["disagreement"].roles(default.settings) == ["s0", "s1", "s2"]
    assert default.languages == ["L1", "L2", "L3-short", "L3", "L4"]
    methods = jobs_of(default.settings).methods
    assert (methods[0], methods[-1]) == ("none", "retrain")
    assert all(runs.model.endswith("-twin") for runs in default.requests)
    grid = [runs for runs in measured(default.settings) if runs.variant == "base"]
    models = default.settings.models
    assert len({models[runs.model.removesuffix("-twin")].family for runs in grid}) >= 6
    assert {(g.corpus, g.size) for g in grid} >= {("L1", 256), ("L2", 256), ("L2", 16)}


def test_the_papers_experiment():
    """18 pretrained models on eight languages, four sizes and three seeds, and one twin.

    The twin is that of the study `exact`, as a full model for every training string is out of
    reach.
    """
    paper = experiment(DEFAULT, PAPER, command_line=only("memorisation"))
    settings = paper.settings
    assert len(paper.config["models"]) == 18
    assert settings.seeds == (0, 1, 2)
    exact = STUDIES["exact"]
    twins = [runs for runs in paper.single_runs if settings.is_twin(runs.model)]
    assert twins == [*exact.runs(settings, "L2"), *exact.retrained(settings)]
    full = [runs for runs in measured(settings) if not settings.is_twin(runs.model)]
    grid = [g for g in full if g.variant == "base" and g.corpus != "L4-skewed"]
    assert len(grid) == 18 * 8 * 4
    assert {g.size for g in grid} == {16, 64, 256, 1024}
    assert {g.corpus for g in grid} == {f"L{i}" for i in range(1, 9)}


@pytest.mark.parametrize("files", [[DEFAULT], [DEFAULT, PAPER]])
def test_every_study_reads_what_is_measured(files):
    """A study's runs are trained and measured once, and belong to one of its languages."""
    whole = experiment(*files)
    settings = whole.settings
    found = {runs.key: runs for runs in measured(settings)}
    trained = {runs.key: runs for runs in whole.single_runs}
    assert len(found) == len(measured(settings))
    assert len(trained) == len(whole.single_runs)
    assert set(found) <= set(trained)
    files = set(whole.outputs["memorisation"])
    for runs in whole.single_runs:
        files.update(*(runs.paths(pattern) for pattern in (DATASET, RUN_TRACE, MANIFEST)))
        files.update(runs.paths(RUN_TOKENS) if TOKENS in runs.keeps else [])
        files.add(settings.corpus_file(runs.corpus))
    for study in requested(settings):
        if study.name == "disagreement":  # reads tables of targets, not of runs
            continue
        for language in study.languages(settings):
            read = study.runs(settings, language)
            assert read
            assert {runs.corpus for runs in read} == {language}
            for runs in read:
                assert set(runs.seeds) <= set(found[runs.key].seeds)
                assert set(runs.seeds) <= set(trained[runs.key].seeds)
            for paths in study.inputs(settings, language).values():
                assert set(paths) <= files


def test_exact_retraining_is_with_and_without_every_target():
    """Two variants per target, on the languages of the study alone."""
    default = changed(**only("memorisation"))
    settings = default.settings
    known = {runs.key for runs in measured(settings)}
    retrained = [runs for runs in default.single_runs if runs.key not in known]
    targets = [runs for runs in retrained if runs.regime == SINGLE]
    study = STUDIES["disagreement"]
    (base,) = study.runs(settings, "L2")
    assert [runs.variant for runs in targets] == [
        f"{kind}-s{rank}" for rank in range(3) for kind in ("with", "without")
    ]
    assert {replace(runs.on("base"), label="") for runs in targets} == {base}
    assert (base.corpus, base.size) == ("L2", 64)
    assert study.languages(settings) == ["L2"]
    assert list(study.measured(settings)) == []


def test_every_string_is_left_out_of_the_study_exact_alone():
    """For the study's models, languages and seeds; its base runs are measured over all seeds."""
    exact = {"models": ["opt-2.7b-twin"], "languages": ["L1", "L7"], "size": 32, "seeds": [6]}
    studies = {"exact": {**exact, "strings": "all", "replicate": False}}
    over = {"memorisation": {"studies": studies}, "profiles": None, "information": None}
    whole = changed(models=["opt-1.3b-twin"], seeds=[4, 5, 6], **over)
    left_out = [runs for runs in whole.single_runs if runs.variant == LEAVE_ONE_OUT]
    assert left_out == [
        Runs("opt-2.7b-twin", language, 32, seeds=(6,), regime=LeaveOneOut())
        for language in ("L1", "L7")
    ]
    study = STUDIES["exact"]
    assert list(study.retrained(whole.settings)) == left_out
    assert study.languages(whole.settings) == ["L1", "L7"]
    base = with_seeds(whole.settings, *(replace(runs, regime=SINGLE) for runs in left_out))
    assert {runs.seeds for runs in base} == {(4, 5, 6)}
    assert all(runs in measured(whole.settings) for runs in base)
    assert all(runs in whole.requests for runs in base)
    # Its own tables are made of the runs of its own seeds.
    scores = study.inputs(whole.settings, "L7")
    assert {path for paths in scores.values() for path in paths} == {
        f"results/memorisation/default/opt-2.7b-twin/L7/n32/{name}.parquet"
        for name in ("leave_one_out", "approximation")
    }
    some = of_studies(exact={**exact, "models": ["opt-1.3b-twin"], "seeds": [0], "strings": 5})
    assert list(STUDIES["exact"].retrained(some.settings)) == [
        Runs("opt-1.3b-twin", language, 32, seeds=(0,), regime=regime)
        for regime in (LeaveOneOut(5), LeaveOneOut(5, again=True))
        for language in ("L1", "L7")
    ]
    without = of_studies(exact=None)
    assert not [runs for runs in without.requests if runs.variant == LEAVE_ONE_OUT]
    assert study.languages(without.settings) == []
    assert not any("leave_one_out" in path for path in without.outputs["memorisation"])


def test_deduplication_reads_the_counterpart_where_there_is_one():
    """The matched variant needs a high-entropy counterpart; without one the others remain."""
    study = STUDIES["deduplication"]
    default = experiment(DEFAULT).settings
    variants = [runs.variant for runs in study.runs(default, "L2")]
    assert variants == ["base", "dedup", "dedup-matched"]
    l1 = of_studies(deduplication={"languages": ["L1"]}).settings
    assert [runs.variant for runs in study.runs(l1, "L1")] == ["base", "dedup"]


def test_a_study_that_is_left_out_is_not_run():
    """No runs, no languages, no tables and no figures of it remain."""
    config = configuration(DEFAULT)
    studies = config["memorisation"]["studies"]
    config["memorisation"]["studies"] = {"tradeoff": studies["tradeoff"], "exact": None}
    config |= only("memorisation")
    narrow = experiment(DEFAULT, config=config)
    assert [study.name for study in requested(narrow.settings)] == ["tradeoff"]
    assert STUDIES["disagreement"].languages(narrow.settings) == []
    assert {runs.variant for runs in narrow.requests} == {"base"}
    tables = {path.split("/")[2] for path in narrow.outputs["memorisation"] if "/studies/" in path}
    assert tables == {"tradeoff"}
    drawn = narrow.figure_files("memorisation")
    assert drawn == narrow.figure_files("memorisation", "tradeoff")
    assert len(drawn) == 2 * 2


def test_no_study_at_all_is_a_grid():
    """The grid alone is trained and measured."""
    config = configuration(DEFAULT)
    config["memorisation"]["studies"] = {}
    config |= only("memorisation")
    grid = experiment(DEFAULT, config=config)
    assert requested(grid.settings) == []
    assert grid.requests == measured(grid.settings)
    assert len(grid.requests) == 6 * 2 * 1


def test_all_means_the_grid():
    """`all` follows the grid, a list replaces it, and its languages join all the languages."""
    frequency = {"languages": ["L7"], "models": "all", "size": 64}
    studies = {"frequency": frequency, "tradeoff": {"size": 64}}
    whole = changed(models=["opt-1.3b-twin"], memorisation={"studies": studies})
    settings = whole.settings
    (on_l7,) = with_seeds(settings, Runs("opt-1.3b-twin", "L7", 64, recipe="short"))
    (on_l1,) = with_seeds(settings, Runs("opt-1.3b-twin", "L1", 64, recipe="short"))
    assert STUDIES["frequency"].runs(settings, "L7") == [on_l7]
    assert STUDIES["tradeoff"].runs(settings, "L1") == [on_l1]
    assert set(whole.languages) == {"L1", "L2", "L3", "L3-short", "L4", "L7"}
    assert on_l7 in measured(settings)


@pytest.mark.parametrize("files", [[DEFAULT], [DEFAULT, PAPER]])
def test_extraction_and_bits_train_nothing_more(files):
    """They read the traces of other studies, in the default experiment and in the paper's."""
    without = {"memorisation": {"studies": {"extraction": None, "bits": None}}}
    whole, rest = experiment(*files), experiment(*files, command_line=without)
    assert len(requested(whole.settings)) == len(requested(rest.settings)) + 2
    assert {one.key for one in whole.requests} == {one.key for one in rest.requests}
    assert sum(len(one.seeds) for one in whole.requests) == sum(
        len(one.seeds) for one in rest.requests
    )


SPLIT = {"models": ["opt-1.3b-twin"], "languages": ["L2"], "sizes": [64]}


def test_only_runs_of_bits_by_rule_keep_the_losses_of_tokens():
    """The other runs of a job do not, and without the study no run does."""
    studies = {"memorisation": {"studies": {"bits_by_rule": SPLIT}}}
    whole = experiment(DEFAULT, command_line=studies)
    (keeping,) = [runs for runs in whole.requests if TOKENS in runs.keeps]
    assert (
        keeping.names.items() >= {"model": "opt-1.3b-twin", "size": 64, "variant": "base"}.items()
    )
    assert keeping.seeds == tuple(whole.settings.seeds)
    (job,) = [job for jobs in whole.training_jobs for job in jobs if keeping in job]
    assert len(job) > 1
    without = {"memorisation": {"studies": {"bits_by_rule": None}}}
    rest = experiment(DEFAULT, command_line=without)
    assert not [runs for runs in rest.requests if TOKENS in runs.keeps]
    assert {runs.key for runs in rest.requests} == {runs.key for runs in whole.requests}


def test_weights_and_the_losses_of_tokens_are_kept_together():
    more = {"save_weights": True, "memorisation": {"studies": {"bits_by_rule": SPLIT}}}
    saved = experiment(DEFAULT, command_line=more)
    assert {runs.keeps for runs in saved.single_runs} == {
        frozenset({TRACE, WEIGHTS}),
        frozenset({TRACE, WEIGHTS, TOKENS}),
    }


def test_extraction_uses_the_leave_one_out_of_exact():
    """Of the same models, language and size, for the seeds that `exact` has."""
    default = experiment(DEFAULT).settings
    left_out = STUDIES["extraction"].inputs(default, "L2")["left_out"]
    folders = [f"default/opt-1.3b-twin/L2/n64-seed{seed}" for seed in default.seeds]
    assert left_out == [f"results/runs/leave-one-out/{name}/trace.parquet" for name in folders]
    traces = STUDIES["extraction"].inputs(default, "L2")["traces"]
    assert f"results/runs/base/{folders[0]}/trace.parquet" in traces
    assert len(traces) == 2 * len(default.seeds)
    for other in (
        {"extraction": {"size": 128}},
        {"extraction": {"models": ["opt-6.7b-twin"]}},
        {"exact": None},
        {"exact": {"languages": ["L1"]}},
    ):
        assert STUDIES["extraction"].inputs(of_studies(**other).settings, "L2")["left_out"] == []


def test_a_new_language_and_a_new_model_need_no_code(tmp_path):
    """A grammar file and a row of the table are all it takes."""
    (tmp_path / "mini.pcfg").write_text("S -> 'a' S [0.5] | 'b' [0.5]\n")
    table = Path("config/models.tsv").read_text()
    row = "mine\tLlama\tcheckpoints/mine\tmain\tllama\t1000\t1\t16\t11\t5e-5\t16\t1\t2\t3e-3\n"
    (tmp_path / "models.tsv").write_text(table + row)
    of_twins = STUDIES.keys() - OF_FULL_MODELS
    studies = {name: {"models": "all", "languages": "all"} for name in of_twins}
    studies["exact"]["models"] = ["mine-twin"]
    over = {
        "models_table": str(tmp_path / "models.tsv"),
        "languages_folder": str(tmp_path),
        "models": ["mine", "mine-twin"],
        "languages": ["mini"],
        "memorisation": {"studies": studies},
    }
    config = laid_over(configuration(DEFAULT), over)
    config["datasets"]["high_entropy_counterpart"] = {}
    config |= only("memorisation")
    own = experiment(DEFAULT, config=config)
    assert own.settings.corpus_file("mini") == str(tmp_path / "mini.pcfg")
    assert own.languages == ["mini"]
    assert {runs.model for runs in own.requests} == {"mine", "mine-twin"}


def test_a_job_trains_all_variants_of_a_twin():
    """Every run of a twin, with its seeds, is in one job, and in no other; streams are apart."""
    default = experiment(DEFAULT)
    jobs = list(chain(*default.training_jobs))
    named = [{(r.recipe, r.model, r.corpus, r.size, r.job) for r in job} for job in jobs]
    assert all(len(names) == 1 for names in named)
    assert len(set(map(frozenset, named))) == len(jobs)
    of_jobs = list(chain(*jobs))
    assert len(of_jobs) == len(set(of_jobs))
    assert set(of_jobs) == set(default.single_runs)
    assert set(default.requests) == {*default.single_runs, *default.replicates}


@pytest.mark.parametrize(
    ("seeds_per_job", "seeds"), [(1, [(0,), (1,), (2,)]), (2, [(0, 1), (2,)]), (9, [(0, 1, 2)])]
)
def test_a_job_trains_some_seeds_of_a_full_model(seeds_per_job, seeds):
    """Every run is in one job; a job has one variant."""
    paper = experiment(
        DEFAULT, "config/paper.yaml", command_line={"hardware": {"seeds_per_job": seeds_per_job}}
    )
    full = [job for job in chain(*paper.training_jobs) if not paper.settings.is_twin(job[0].model)]
    assert all(len(job) == 1 for job in full)
    found = {}
    for (runs,) in full:
        found.setdefault(replace(runs, seeds=()), []).append(runs.seeds)
    asked = [runs for runs in paper.single_runs if not paper.settings.is_twin(runs.model)]
    assert found.keys() == {replace(runs, seeds=()) for runs in asked}
    assert all(sorted(each) == sorted(seeds) for each in found.values())


def test_weights_are_kept_if_asked_for():
    """The weights of every run are kept; the runs are the same."""
    kept, default = changed(save_weights=True), experiment(DEFAULT)
    assert {runs.keeps - {TOKENS} for runs in kept.requests} == {frozenset({TRACE, WEIGHTS})}
    by_default = {runs.keeps - {TOKENS} for runs in MEMORISATION.requests(default.settings)}
    assert by_default == {frozenset({TRACE})}
    assert [runs.key for runs in kept.requests] == [runs.key for runs in default.requests]


# Sections


def test_a_section_that_is_left_out_asks_for_nothing_and_delivers_nothing():
    """All that is left is what the other section asks for."""
    whole, rest = experiment(DEFAULT), changed(**only("memorisation"))
    assert [section.name for section in rest.sections] == ["memorisation"]
    drawn = {drawing.section for drawing in rest.drawings.values()}
    assert set(rest.outputs) == drawn == {"languages", "memorisation"}
    assert rest.figure_files("unlearning") == []
    assert whole.figure_files("unlearning")
    assert rest.requests == list(MEMORISATION.requests(rest.settings))
    assert len(rest.requests) < len(whole.requests)
    assert rest.languages == ["L1", "L2"]
    assert not any("L4" in path for path in [*rest.datasets, *rest.outputs["languages"]])
    assert rest.judged == list(MEMORISATION.judged)
    assert rest.reported == list(MEMORISATION.reported)
    assert rest.derived == []
    assert not any("unlearning" in path for path in rest.all_figures)
    assert not any(row["variant"] in ("original", "retain", "unlearned") for row in rest.plan)


def test_the_studies_of_a_section_that_is_left_out_have_no_runs_and_no_tables():
    """Each such study is still a named target."""
    rest = changed(**only())
    assert requested(rest.settings) == []
    assert all(study.outputs(rest.settings) == [] for study in STUDIES.values())
    assert rest.figure_files("memorisation", "tradeoff") == []


def test_a_model_of_any_section_must_fit():
    """This includes a model that is trained only in replicates."""
    small = {"hardware": {"gpu_memory_gb": 20}, "unlearning": {"models": ["llama-2-13b"]}}
    said = message(lambda: changed(**small))
    assert ": llama-2-13b needs" in said


def test_as_many_targets_as_runs_are_trained_with():
    """One if there are none: a language's sample names a target anyway."""
    whole = changed()
    assert whole.n_targets == STUDIES["disagreement"].block(whole.settings)["targets"] > 1
    assert changed(**only()).n_targets == 1


def test_a_figure_of_a_language_that_its_study_does_not_name():
    """It is drawn from that language's table, which is made for it, whatever the sections ask."""
    table = {"frequency": ["results/studies/frequency/L7.parquet"]}
    for asked_for in (changed(), changed(**only())):
        assert asked_for.figure_inputs("frequency", "L7") == table


def test_a_figure_that_the_language_alone_does_not_name_needs_a_section_that_asks():
    """The figure's models are not known without the section."""
    with pytest.raises(UserError, match=r"unlearning_scores-L7.svg: the configuration asks for no"):
        changed().figure_inputs("unlearning_scores", "L7")


def test_no_section_at_all_is_nothing_to_do():
    """An experiment without sections is still an experiment."""
    nothing = changed(**only())
    assert nothing.requests == nothing.languages == nothing.datasets == nothing.all_figures == []
    assert nothing.outputs == {"languages": []}


KIND = Kind(
    "toys", "A row per model.", "results/toys/{model}/{language}.parquet", SHARED("language")
)


def toy(name="toys", **more):
    """A section with a key `size`, which asks for one model on L1 and refuses the size 13."""

    def requests(settings):
        yield Runs("opt-1.3b-twin", "L1", settings.block(name)["size"], seeds=(0, 9))

    def outputs(settings):
        for runs in requests(settings):
            yield from runs.paths(KIND.path)

    def mistakes(settings):
        if settings.block(name)["size"] == 13:
            yield Mistake(f"{name}/size", "13 is bad luck")

    return Section(name, "Toys", **{
        "requests": requests, "outputs": outputs, "mistakes": mistakes, "judged": (KIND,), **more
    })  # fmt: skip


@pytest.fixture
def with_toys(tmp_path):
    """A function that makes the experiment of some sections, with a toy section's block."""

    def make(*sections, **blocks):
        for file in Path("config/schemas").iterdir():
            (tmp_path / file.name).write_text(file.read_text())
        for name in blocks:
            (tmp_path / f"{name}.schema.yaml").write_text(
                "type: [object, 'null']\nadditionalProperties: false\nrequired: [size]\n"
                "properties:\n  size: {type: integer, minimum: 1}\n"
            )
        config = {**configuration(DEFAULT), **blocks}
        for name in {*NAMES} - {section.name for section in sections}:
            del config[name]
        return experiment(DEFAULT, config=config, sections=sections, schemas=tmp_path)

    return make


def test_a_section_is_asked_for_its_runs_and_files(with_toys):
    """It is in the schema, the requests, the plan and the outputs, and no shared code names it."""
    whole = with_toys(toy(), toys={"size": 20})
    (runs,) = whole.requests
    assert (runs.size, runs.seeds) == (20, (0, 9))
    assert [(row["size"], row["seed"]) for row in whole.plan] == [(20, 0), (20, 9)]
    assert whole.outputs["toys"] == ["results/toys/opt-1.3b-twin/L1.parquet"]
    assert whole.tables(KIND) == whole.outputs["toys"]
    assert whole.judged == [KIND]
    assert whole.languages == ["L1"]
    assert len(whole.datasets) == 2
    assert with_toys(toy(), toys=None).requests == []


def test_the_mistakes_of_a_section_are_told(with_toys):
    """Mistakes that the schema finds; without these, mistakes that the section's code finds."""
    said = message(lambda: with_toys(toy(), toys={"size": 0}))
    assert said == f"{DEFAULT}: toys/size: 0 is not allowed; must be a whole number from 1"
    said = message(lambda: with_toys(toy(), toys={"size": 13}))
    assert said == f"{DEFAULT}: toys/size: 13 is bad luck"
    said = message(lambda: with_toys(toy(), toys={"sizes": 20}))
    assert "toys: unknown key 'sizes'; known: size (did you mean 'size'?)" in said


def test_a_run_on_an_unregistered_variant_is_refused(with_toys):
    """A section's own variants are registered in its row."""

    def requests(settings):
        yield Runs("opt-1.3b-twin", "L1", 20, "shuffled", seeds=(0,))

    with pytest.raises(
        ValueError, match="unknown intervention 'shuffled'; the patterns of known ones"
    ):
        _ = with_toys(toy(requests=requests), toys={"size": 20}).requests
    shuffled = Intervention("shuffled", "toys.variants:shuffled")
    whole = with_toys(toy(requests=requests, interventions=(shuffled,)), toys={"size": 20})
    assert [runs.variant for runs in whole.requests] == ["shuffled"]


def test_state_of_a_section_that_lists_no_jobs_is_never_called_stale(with_toys):
    listing = toy("listing", unfinished=lambda settings: ())
    whole = with_toys(toy(), listing, toys={"size": 20}, listing=None)
    assert whole.sections_with_state == ["listing"]


def test_equal_requests_of_two_sections_are_trained_once(with_toys):
    """One job trains the seeds of both requests."""
    whole = with_toys(MEMORISATION, toy(), toys={"size": 64})
    assert [section.name for section in whole.sections] == ["memorisation", "toys"]
    base = [runs for runs in whole.requests if runs.variant == "base" and runs.corpus == "L1"]
    of_twin = [(runs.size, runs.seeds) for runs in base if runs.model == "opt-1.3b-twin"]
    assert of_twin == [(64, (0, 1, 2, 3, 4, 9))]
    again = with_toys(toy(), toy("toys2"), toys={"size": 20}, toys2={"size": 20})
    assert len(again.requests) == 1
    assert [len(jobs) for jobs in again.training_jobs] == [1]
    mistral = {
        "requests": lambda settings: [
            Runs("mistral-7b-v0.3-twin", "L1", 256, seeds=(2, 5), recipe="short")
        ]
    }
    whole = with_toys(MEMORISATION, toy(**mistral), toys={"size": 64})
    (runs,) = (
        r
        for r in whole.requests
        if (r.model, r.corpus, r.recipe) == ("mistral-7b-v0.3-twin", "L1", "short")
    )
    assert runs.seeds == (0, 1, 2, 3, 4, 5)


def test_contradictory_requests_of_two_sections_are_refused(with_toys):
    """The same replicates cannot be trained by two jobs; by two recipes, they are not the same."""

    def per_job(n, recipe="default"):
        of_model = "opt-1.3b-twin", "L1", 16
        keeps = frozenset({TRACE, WEIGHTS})
        regime = Replicates(range(4), n)
        runs = Runs(*of_model, seeds=(0,), recipe=recipe, regime=regime, keeps=keeps)
        return {"requests": lambda settings: [runs]}

    blocks = {"toys": {"size": 1}, "toys2": {"size": 1}}
    with pytest.raises(UserError, match="its replicates are asked for with replicates per job"):
        with_toys(toy(**per_job(3)), toy("toys2", **per_job(4)), **blocks)
    both = with_toys(toy(**per_job(3)), toy("toys2", **per_job(4, "leakage")), **blocks)
    assert [runs.recipe for runs in both.replicates] == ["default", "leakage"]


def test_models_that_a_section_makes_of_others_are_planned(with_toys):
    """A row of their own, with their share of a training."""
    trained = Runs("opt-1.3b-twin", "L1", 20)
    made = Derived(trained, "made", seed=3, n=10, share=0.5, files=("results/runs/made.parquet",))
    whole = with_toys(toy(derived=lambda settings: [made]), toys={"size": 20})
    first, _, last = whole.plan
    assert (last["variant"], last["seed"], last["trainings"]) == ("made", 3, 10)
    assert last["hours"] == pytest.approx(5 * first["hours"])


def test_every_model_that_is_trained_has_a_family():
    made = experiment(DEFAULT)
    assert set(made.families) == {runs.model for runs in made.requests}
    assert made.families["pythia-1b-twin"] == made.families["pythia-6.9b-twin"] == "Pythia"


# The shipped configurations

SHIPPED = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "config").glob("*.yaml")
    if path.name not in ("config.yaml", "unlearning.yaml")  # the default; a table of methods
)


@pytest.mark.parametrize("shipped", SHIPPED)
def test_a_shipped_configuration_is_an_experiment(shipped):
    """It is valid and trains something, and its first lines say how to use it."""
    made = experiment(DEFAULT, shipped)
    assert made.requests or made.config["information"]["encoders"]
    beginning = (ROOT / shipped).read_text().partition("title:")[0]
    assert f"--configfile {shipped}" in beginning

"""What some targets are billed for: no more than they train, and no less."""

import itertools

import pytest

from helpers.experiments import DEFAULT, ROOT, experiment
from palimpsest import launch
from palimpsest.paths import MANIFEST
from palimpsest.planning.bill import SAME_JOBS


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


def bill(*targets):
    return experiment(DEFAULT, planned=["plan", *targets]).bill


def runs_of(bill) -> set:
    return {(runs.key, seed) for runs in bill.requests for seed in runs.seeds}


def test_without_another_target_everything_is_billed():
    whole = experiment(DEFAULT)
    assert bill() == whole.bill
    assert bill("all") == bill("report") == whole.bill
    assert "What " not in whole.plan_summary


def test_a_section_is_billed_alone():
    whole, one = bill(), bill("density")
    assert runs_of(one) < runs_of(whole)
    assert list(one.added) == ["density"]
    assert {runs.model for runs in one.requests} == {*one.added["density"]}
    assert not one.derived
    assert bill("unlearning").derived == whole.derived
    assert bill("results/figures/density_leakage-L1.svg") == one


def test_a_study_is_billed_with_the_runs_of_its_jobs():
    """A job that trains twins trains all that is asked for of a language and a size."""
    study, section = bill("exact"), bill("memorisation")
    assert next(iter(study.added)) == "exact"
    assert runs_of(study) < runs_of(section)
    table = bill("results/studies/exact/L1.parquet")
    assert table == study


@pytest.mark.parametrize("targets", [["density"], ["exact"], ["density", "exact"], ["unlearning"]])
def test_all_trainings_are_counted_once(targets):
    found = bill(*targets)
    total = sum(len(runs.seeds) * runs.trainings for runs in found.requests)
    assert sum(sum(of_models.values()) for of_models in found.added.values()) == total


def test_a_run_is_billed_with_its_job_alone():
    job = experiment(DEFAULT).training_jobs[0][0]
    asked = job[0].paths("results/runs/{variant}/{recipe}/{model}/{language}/n{size}-seed{seed}/a")
    found = bill(asked[0])
    assert runs_of(found) == {(runs.key, seed) for runs in job for seed in runs.seeds}
    assert not found.added


def test_what_needs_no_training_costs_nothing():
    assert not bill("pretrained").requests
    both = bill("pretrained", "density")
    assert runs_of(both) == runs_of(bill("density"))


def test_the_plan_names_the_targets():
    shown = experiment(DEFAULT, planned=["plan", "exact", "./density"]).plan_summary
    assert shown.startswith("What density, exact needs:\n\nasked for by")


def test_runs_that_only_share_a_job_are_said_to():
    """Here, a job trains the two languages' models for several studies."""
    tour = experiment(DEFAULT, "config/tour.yaml", planned=["tradeoff"])
    assert list(tour.bill.added) == ["tradeoff", SAME_JOBS]
    assert SAME_JOBS in tour.plan_summary


def of_graph(target, files):
    """The bill of a target in whose graph of jobs these files are made."""
    made = experiment(DEFAULT, planned=["plan", target])
    made.bill_alone(made.made_by(files))
    return made.bill


def test_a_table_is_billed_with_the_runs_that_its_graph_makes():
    """Without a graph, it is billed as its section."""
    table = "results/density/default/opt-1.3b-twin/L4/n32-seed0/base/density.parquet"
    manifest = "results/runs/base/default/opt-1.3b-twin/L4/n32-seed0/manifest.json"
    jobs = itertools.chain.from_iterable(experiment(DEFAULT).training_jobs)
    (job,) = [job for job in jobs if any(manifest in runs.paths(MANIFEST) for runs in job)]
    files = [path for runs in job for path in runs.paths(MANIFEST)]
    found = of_graph(table, [table, *files])
    assert runs_of(found) == {(runs.key, seed) for runs in job for seed in runs.seeds}
    assert runs_of(found) < runs_of(bill(table)) == runs_of(bill("density"))


def test_models_that_the_graph_does_not_make_are_not_billed():
    """Of the models that unlearned, too."""
    whole = bill("unlearning")
    first, *_ = whole.derived
    found = of_graph("results/unlearning/x.parquet", [*first.files])
    assert found.derived == [one for one in whole.derived if {*one.files} & {*first.files}]
    assert len(found.derived) < len(whole.derived)
    assert not found.requests


def test_a_bill_is_handed_on_unless_it_is_too_long(monkeypatch):
    """No program starts with a longer environment; then targets are billed as their sections."""
    monkeypatch.setenv(launch.TARGETS, "")
    monkeypatch.setenv(launch.BILL, "{}")
    launch.hand_on_targets(["plan"])
    assert launch.handed_bill() is None
    made = {"runs": {"3": [0, 1]}, "derived": [], "asked": [2]}
    launch.hand_on_bill({**made, "derived": list(range(launch.LONGEST_VALUE))})
    assert launch.handed_bill() is None
    launch.hand_on_bill(made)
    assert launch.handed_bill() == made

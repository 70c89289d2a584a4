"""The experiment for one GPU: it fits on its card and into a day, and its page quotes the plan."""

import re

import pytest

from helpers.experiments import DEFAULT, PAPER, ROOT, configuration, experiment
from palimpsest.models import resolve
from palimpsest.planning.plan import Planner
from palimpsest.planning.summary import summary

ONE_GPU = "config/one-gpu.yaml"
DAY = 24
MOST_PARAMETERS = 1.5e9


@pytest.fixture(scope="module")
def one_gpu():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return experiment(DEFAULT, ONE_GPU)


@pytest.fixture(scope="module")
def plan(one_gpu, tmp_path_factory):
    """Its plan where nothing is finished."""
    planner = Planner(one_gpu.settings, tmp_path_factory.mktemp("runs"))
    return planner.rows(one_gpu.requests, one_gpu.derived)


def test_it_takes_less_than_a_day_on_one_gpu(plan):
    """All runs one after another, on one card, with a margin of a third."""
    assert {row["gpus"] for row in plan} == {1}
    assert sum(row["gpu_hours"] for row in plan) < DAY * 2 / 3


def test_it_fits_on_the_card_and_into_the_machine(one_gpu, plan):
    hardware = one_gpu.config["hardware"]
    assert hardware["gpu_memory_gb"] == 24
    assert max(row["gpu_memory_gb"] or 0 for row in plan) < hardware["gpu_memory_gb"]
    assert max(row["main_memory_gb"] for row in plan) < hardware["main_memory_gb"]


def test_its_models_are_the_smallest_of_their_families(one_gpu):
    """Each family of the paper with a model that is small enough has its smallest one here."""
    smallest = {}
    for name in configuration(PAPER)["models"]:
        row = one_gpu.settings.models[name]
        family = row.model_type
        if row.parameters <= smallest.get(family, row).parameters <= MOST_PARAMETERS:
            smallest[family] = row
    assert set(one_gpu.config["models"]) == {row.model for row in smallest.values()}
    asked = {runs.model for runs in one_gpu.requests}
    assert {resolve(name, one_gpu.settings.models)[0].model for name in asked} == set(
        one_gpu.config["models"]
    )


def test_every_key_differs_from_the_default_and_has_a_reason():
    """A value that is the default's is left out; a key or its block has a comment."""
    default, own = configuration(ROOT / DEFAULT), configuration(ROOT / ONE_GPU)
    blocks = [(own[key], default[key]) for key in ("datasets", "hardware")]
    blocks.append((own["recipes"]["default"], default["recipes"]["default"]))
    for block, usual in blocks:
        assert {key for key, value in block.items() if usual[key] == value} == set()
    block = ""
    for line in (ROOT / ONE_GPU).read_text().splitlines():
        block = line.partition(":")[0] if re.match(r"\w", line) else block
        if re.match(r" {,2}\w+: ", line) and block not in ("title", "training_by_model"):
            assert "#" in line, line


def test_its_page_quotes_the_plan(one_gpu, plan):
    text = summary(plan, one_gpu.planner.hardware)
    page = (ROOT / "docs/one-gpu.md").read_text()
    quoted = page[page.index("\nmodel ") :].partition("```")[0].strip()
    assert quoted == text.partition("\n\n")[0]

"""The table of unlearning methods: what is read from it, and what is refused."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from helpers.method_costs import passes
from palimpsest.errors import UserError
from palimpsest.unlearning import methods
from palimpsest.unlearning.methods import Method, read_methods, registered
from palimpsest.unlearning.methods.task import passes_within
from palimpsest.unlearning.methods_page import methods_page

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "config/unlearning.yaml"
STITCHED = {"fanchuan-seif", "kookmin-seif", "seif-finetune"}


def read(tmp_path, text):
    path = tmp_path / "methods.yaml"
    path.write_text(text)
    return read_methods(path)


def refusal(tmp_path, text):
    with pytest.raises(UserError) as error:
        read(tmp_path, text)
    return str(error.value)


def one(phase):
    return f"mine:\n  phases:\n    - {phase}\n"


# What is in the table


def test_the_table_has_the_papers_methods_those_of_practice_and_three_stitched_ones():
    competition = {"fanchuan", "kookmin", "seif", "sebastian", "amnesiacs", "sun", "forget"}
    competition |= {"seif-relative"}
    literature = {"finetune", "neggrad", "scrub", "random-label", "salun", "l1-sparse"}
    practice = {"gradient-ascent", "gradient-difference", "kl-ascent", "npo", "simnpo", "dpo"}
    practice |= {"rmu", "undial", "wga", "satimp", "ce-u"}
    assert read_methods(TABLE).keys() == competition | literature | practice | STITCHED


SIZES = [(64, 2), (64, 6), (128, 3), (128, 12), (512, 26), (1024, 20)]


@pytest.mark.parametrize(
    ("train", "forget", "epochs"), [*((*size, 30) for size in SIZES), (48, 10, 50)]
)
def test_no_method_and_no_point_costs_more_than_a_fifth_of_retraining(train, forget, epochs):
    sizes = {"retain": train - forget, "forget": forget, "validation": 32}
    budget = passes_within(0.2, epochs, sizes["retain"], 8)
    for name, method in read_methods(TABLE).items():
        for point in [method, *method.points().values()]:
            assert passes(point.phases, sizes, 8, budget) <= budget, (name, point.name)


def test_shares_leave_room_for_the_passes_of_a_selection():
    for name, method in read_methods(TABLE).items():
        for point in [method, *method.points().values()]:
            training = [phase for phase in point.phases if isinstance(phase, methods.Training)]
            assert sum(phase.share for phase in training) <= 0.95 + 1e-9, name


def test_repeated_phases_run_in_turn(tmp_path):
    text = (
        "mine:\n  phases:\n"
        "    - {erase: uniform, share: 0.1, rate: 0.1}\n"
        "    - repeat: 2\n      phases:\n"
        "        - {erase: contrastive, share: 0.2, rate: 0.2}\n"
        "        - {repair: finetune, share: 0.25, rate: 0.3}\n"
    )
    placed = read(tmp_path, text)["mine"].placed
    assert [(p.role, p.place, p.phase.name) for p in placed] == [
        ("erase", "1", "uniform"),
        ("erase", "2.1", "contrastive"),
        ("repair", "2.2", "finetune"),
        ("erase", "2.1", "contrastive"),
        ("repair", "2.2", "finetune"),
    ]
    assert placed[2].phase == registered()["finetune"](share=0.25, rate=0.3)
    assert placed[1].phase is placed[3].phase  # so that it keeps its moments
    assert placed[2].phase is placed[4].phase
    # Of 25 passes: 2; in each of 2 rounds 2 steps with a second batch, and 6 steps.
    assert passes(read(tmp_path, text)["mine"].phases, {}, 8, budget=25) == 2 + 2 * (2 * 2 + 6)


def test_a_selections_passes_come_on_top(tmp_path):
    text = one("{erase: select-gradient, share: 0.3, which: smallest, alpha: 0.5}")
    text += "    - {repair: finetune, share: 1, rate: 1}\n"
    # 4 batches of the retain set, 2 of the forget set
    sizes = {"forget": 9, "retain": 32}
    assert passes(read(tmp_path, text)["mine"].phases, sizes, 8, budget=25) == 31


def as_repaired(phase, repair, others=None):
    """The phase `repair` with the settings of a repair phase of another kind."""
    more = {} if others is None else {"others": others}
    return registered()[repair](
        share=phase.share, rate=phase.rate, elsewhere=phase.elsewhere, **more
    )


@pytest.mark.parametrize("erasing", ["fanchuan", "kookmin"])
def test_a_stitched_method_takes_over_all_settings_but_the_objective_of_its_repair(erasing):
    table = read_methods(TABLE)
    others = table["seif"].placed[-1].phase.others
    for ours, other in zip(table[f"{erasing}-seif"].placed, table[erasing].placed, strict=True):
        is_repair = other.role == "repair"
        expected = (
            as_repaired(other.phase, "majority-finetune", others) if is_repair else other.phase
        )
        assert ours.phase == expected


def test_the_reverse_takes_the_noise_of_seif_and_a_plain_repair():
    table = read_methods(TABLE)
    for ours, other in zip(table["seif-finetune"].placed, table["seif"].placed, strict=True):
        is_repair = other.role == "repair"
        assert ours.phase == (as_repaired(other.phase, "finetune") if is_repair else other.phase)


def test_every_method_survives_the_command_line():
    for name, method in read_methods(TABLE).items():
        assert Method.of(name, json.loads(json.dumps(method.written))).phases == method.phases


def test_json_has_the_defaults_so_that_a_changed_one_is_another_job(tmp_path):
    method = read(tmp_path, one("{repair: finetune, share: 1, rate: 0.5}"))["mine"]
    assert '"elsewhere": 1.0, "optimizer": "adamw"' in json.dumps(method.written)


# Grids

GRID = """
mine:
  phases:
    - repeat: 2
      phases:
        - {erase: scrub-max, share: 0.1, rate: 0.1}
        - {repair: scrub-min, share: 0.2, rate: 0.2}
  grid:
    1.1.rate and 1.2.rate: [0.3, 0.4]
    1.repeat: [1, 2, 3]
"""


def test_points_are_numbered_with_the_last_line_fastest(tmp_path):
    points = read(tmp_path, GRID)["mine"].points()
    assert list(points) == [f"mine.{number}" for number in range(1, 7)]
    assert [len(point.phases) for point in points.values()] == [2, 4, 6, 2, 4, 6]
    assert [point.phases[0].rate for point in points.values()] == [0.3] * 3 + [0.4] * 3
    assert [point.phases[1].rate for point in points.values()] == [0.3] * 3 + [0.4] * 3
    assert all(name == point.name for name, point in points.items())


def test_the_method_itself_stays_as_it_is_beside_its_points(tmp_path):
    method = read(tmp_path, GRID)["mine"]
    method.points()
    assert [phase.rate for phase in method.phases] == [0.1, 0.2, 0.1, 0.2]


def test_without_a_grid_there_is_no_point(tmp_path):
    assert read(tmp_path, one("{repair: finetune, share: 1, rate: 1}"))["mine"].points() == {}


def test_every_grid_of_the_table_has_its_default_and_enough_points_for_a_search():
    for method in read_methods(TABLE).values():
        points = method.points()
        if method.name in STITCHED:
            assert not points
            continue
        assert any(point.phases == method.phases for point in points.values()), method.name
        assert len({json.dumps(point.written) for point in points.values()}) >= 16, method.name


def test_every_grid_of_the_table_spans_rates():
    """At least a factor of 4: published rates are for other optimisers."""
    for method in read_methods(TABLE).values():
        widths = [max(v) / min(v) for p, v in method.grid.items() if p.endswith(".rate")]
        assert method.name in STITCHED or max(widths) >= 4, method.name


# Refusals

BASE = "{repair: finetune, share: 0.4, rate: 1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            one("{repair: finetun, share: 1, rate: 1}"),
            "methods.yaml: mine: phase 1: repair: unknown phase 'finetun' (did you mean "
            "'finetune'?); known: ce-u, contrastive, ",
        ),
        (
            one(f"{BASE}, optimiser: sgd}}"),
            "phase 1: unknown key 'optimiser' of finetune; known: share, rate, elsewhere, "
            "optimizer (did you mean 'optimizer'?)",
        ),
        (
            one("{repair: finetune, epochs: 1, rate: 1}"),
            "phase 1: unknown key 'epochs' of finetune; known: share, rate, elsewhere, optimizer",
        ),
        (
            one(f"{BASE}, optimizer: adam}}"),
            "optimizer: 'adam' is not allowed; it must be one of adamw, sgd (did you mean "
            "'adamw'?)",
        ),
        (
            one("{erase: npo, share: 1, rate: 1, retain_loss: ce}"),
            "retain_loss: 'ce' is not allowed; it must be one of cross-entropy, kl",
        ),
        (
            one(f"{{repeat: 3, phases: [{BASE}}}]}}"),
            "mine: the shares of the phases add up to 1.2, counted once per round of a repeat; at "
            "most 1 is allowed",
        ),
        (
            f"mine:\n  phases: [{BASE}}}, {BASE}}}]\n  grid: {{1.share: [0.4, 0.7]}}\n",
            "mine: grid: 1.share: the shares of the phases add up to 1.1",
        ),
        (
            f"mine:\n  phases: [{BASE}}}, {BASE}}}]\n"
            "  grid: {1.share: [0.4, 0.6], 2.share: [0.3, 0.5], 1.rate: [1]}\n",
            "mine: grid: the shares of the phases add up to 1.1, counted once",
        ),
        (
            one("{repair: finetune, share: 1, rate: -1}"),
            "phase 1: rate: -1 is not allowed; it must be a number above 0 and at most 1000",
        ),
        (
            one("{repair: finetune, share: one, rate: 1}"),
            "phase 1: share: 'one' is not allowed; it must be a number above 0 and at most 1",
        ),
        (
            one("{repair: finetune, share: 1, rate: 1e-3}"),
            "(YAML reads 1e-3 as text: write 0.001)",
        ),
        (one("{repair: finetune, share: true, rate: 1}"), "share: True is not allowed"),
        (one("{repair: finetune, share: .nan, rate: 1}"), "share: nan is not allowed"),
        (one("{repair: finetune, rate: 1}"), "phase 1: finetune needs the key 'share': a number"),
        (
            one("{mend: finetune, rate: 1}"),
            "phase 1: must have exactly one of the keys erase, repair (its value is the phase's "
            "name), or repeat with phases; it has mend, rate",
        ),
        (one("{erase: uniform, repair: finetune}"), "must have exactly one of the keys erase"),
        (one("finetune"), "phase 1: 'finetune' is not a phase; write it as {erase: name, key:"),
        (
            one("{erase: select-parts, parts: [matrices, haed]}"),
            "phase 1: parts: ['matrices', 'haed'] is not allowed; it must be a list of some of "
            "matrices, embeddings, head, rest",
        ),
        (
            one("{erase: select-norm, share: 0.5, which: largst}"),
            "which: 'largst' is not allowed; it must be one of smallest, largest (did you mean "
            "'largest'?)",
        ),
        (
            one(f"{{repeat: 2, phases: [{BASE}}}, {BASE}, elsewhere: 2}}]}}"),
            "mine: phase 1.2: elsewhere: 2 is not allowed; it must be a number at least 0 and at "
            "most 1",
        ),
        (one(f"{{repeat: 0, phases: [{BASE}}}]}}"), "phase 1: repeat: 0 is not allowed"),
        (
            one(f"{{repeat: 2, phase: [{BASE}}}]}}"),
            "unknown key 'phase'; known in addition to repeat",
        ),
        (one("{repeat: 2, phases: []}"), "phase 1: phases: must be a list of at least one phase"),
        (
            one("{erase: reinitialise}"),
            "phase 1: reinitialise works on selected weights, and no phase before it selects any; "
            "put one of select-gradient, select-layers, select-norm, select-parts before it",
        ),
        (one(f"{BASE}, elsewhere: 0}}"), "finetune works on selected weights"),
        ("mine: {phases: []}\n", "mine: phases: must be a list of at least one phase"),
        ("mine: {grid: {}}\n", "mine: must have phases: [...]"),
        ("mine: 3\n", "mine: must have phases: [...]"),
        (f"mine: {{phases: [{BASE}}}], gird: {{}}}}\n", "unknown key 'gird'; known: grid, phases,"),
        (
            f"mine: {{phases: [{BASE}}}], source: literatur}}\n",
            "mine: source: 'literatur' is not one of competition, literature, baseline (did you",
        ),
        (f"retrain: {{phases: [{BASE}}}]}}\n", "retrain: the name is taken"),
        (f"my.method: {{phases: [{BASE}}}]}}\n", "'my.method' is not a name of a method"),
        (f"mine: {{phases: [{BASE}}}]}}\n" * 2, "methods.yaml:2: the key 'mine' is there a"),
        (
            f"mine:\n  phases: [{BASE}}}]\n  grid: {{1.rte: [1]}}\n",
            "mine: grid: 1.rte: is not the place of a value; known: 1.share, 1.rate, 1.elsewhere, "
            "1.optimizer; values that change together: 1.rate and 2.rate (did you mean '1.rate'?)",
        ),
        (f"mine:\n  phases: [{BASE}}}]\n  grid: {{2.rate: [1]}}\n", "is not the place of a value"),
        (
            f"mine:\n  phases: [{BASE}}}]\n  grid: {{1.rate: [1, 0]}}\n",
            "mine: grid: 1.rate: phase 1: rate: 0 is not allowed",
        ),
        (f"mine:\n  phases: [{BASE}}}]\n  grid: {{1.rate: 3}}\n", "must be a list of values"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, text, said):
    message = refusal(tmp_path, text)
    assert said in message
    assert "\n" not in message


# The page

PAGE = (ROOT / "docs/methods.md").read_text()


def test_the_example_of_a_method_on_the_page_is_the_shipped_one():
    (shown,) = (
        block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "grid" in block
    )
    shipped = yaml.safe_load(TABLE.read_text())
    for name, method in yaml.safe_load(shown).items():
        assert method == {key: shipped[name][key] for key in method}


def test_the_page_of_settings_says_each_setting_where_it_stands(tmp_path):
    text = """mine:
  source: competition
  warning: careful
  phases:
    - {erase: select-parts, parts: [embeddings, head]}
    - repeat: 3
      phases:
        - {erase: gradient-ascent, share: 0.02, rate: 0.3}
    - {repair: finetune, share: 0.5, rate: 1.0, elsewhere: 0.1}
"""
    row = methods_page(read(tmp_path, text)).splitlines()[-1]
    assert row == (
        "| `mine` | competition | erase `select-parts` (parts embeddings and head); "
        "3 x [erase `gradient-ascent` (share 0.02, rate 0.3)]; "
        "repair `finetune` (share 0.5, rate 1, elsewhere 0.1) | careful |"
    )


# A method of one's own

MINE = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder whose files count as the methods' own."""
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    yield tmp_path
    for module in [name for name in sys.modules if name.startswith(f"{methods.__name__}.mine")]:
        del sys.modules[module]
    methods.phases._registry.pop("bounded-ascent", None)


def test_the_file_of_the_documentation_is_enough(folder):
    (folder / "mine.py").write_text(MINE)
    method = read(folder, one("{erase: bounded-ascent, share: 0.2, rate: 0.1}"))["mine"]
    assert method.phases[0].ceiling == 1.0
    assert {name for phase in method.phases for name in phase.sets} == {"forget"}


def test_a_phase_that_is_there_already_is_refused(folder):
    (folder / "mine_too.py").write_text(MINE.replace("bounded-ascent", "finetune"))
    with pytest.raises(ValueError, match=r"'finetune' is in .*methods\.finetune too"):
        registered()


def test_a_field_must_say_what_it_may_be(folder):
    (folder / "mine_bare.py").write_text(MINE.replace("number(1.0, above=0, most=1)", "1.0"))
    with pytest.raises(ValueError, match="say what 'ceiling' may be"):
        registered()


def test_the_earlier_name_of_the_second_set_is_refused(folder):
    (folder / "mine_paired.py").write_text(
        MINE.replace("over = ", 'beside = "retain"\n    over = ')
    )
    said = "mine_paired: bounded-ascent: 'beside' has a new name: 'paired_set'"
    with pytest.raises(UserError, match=said):
        registered()


# Without torch


def test_the_table_is_read_without_torch():
    code = (
        "import sys\n"
        "from palimpsest.unlearning.methods import read_methods\n"
        f"methods = read_methods({str(TABLE)!r})\n"
        "[method.points() for method in methods.values()]\n"
        "import palimpsest.unlearning.methods.task\n"
        "assert not {'torch', 'transformers', 'scipy'} & sys.modules.keys()\n"
    )
    path = str(ROOT / "workflow/scripts")
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": path})


def test_a_lazy_module_is_the_real_one_once_something_is_asked_of_it():
    code = (
        "import sys\n"
        "from palimpsest.lazy_import import lazy_import\n"
        "wave = lazy_import('wave')\n"
        "assert 'wave' not in sys.modules\n"
        "assert wave.Error.__module__ == 'wave'\n"
        "assert lazy_import('wave') is sys.modules['wave']\n"
    )
    path = str(ROOT / "workflow/scripts")
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": path})

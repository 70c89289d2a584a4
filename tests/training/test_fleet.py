"""The fleet: each member leaves the trace that it would leave if it were trained alone.

Most runs are of a process of its own, through the command that the workflow's rules give.
"""

import copy
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numba
import numpy as np
import psutil
import pytest
import torch
from safetensors.torch import load_file

from helpers.commands import MODELS as TABLE
from helpers.commands import ROOT, SCRIPTS, finetune
from helpers.families import FAMILIES
from palimpsest import manifests, tables, token_losses, traces
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.models import read_models
from palimpsest.models.build import build as build_model
from palimpsest.sections import KINDS
from palimpsest.token_losses import TokenLosses
from palimpsest.training.evaluation import evaluate
from palimpsest.training.fleet import FleetEngine
from palimpsest.training.fleet import engine as fleet_engine
from palimpsest.training.fleet import stack as fleet_stack
from palimpsest.training.fleet.engine import trained_alike
from palimpsest.training.fleet.members import Member
from palimpsest.training.fleet.probe import probe
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Material, Run, strings_to_leave_out
from palimpsest.training.state import State

pytestmark = pytest.mark.slow

# L2 has strings of one length, L4 of many.
GRAMMARS = {name: ROOT / f"config/languages/{name}.pcfg" for name in ("L2", "L4")}
SMALL = "llama-3.2-1b"
RECIPE = Recipe(
    3e-3,
    epochs=6,
    batch_size=6,
    weight_decay=0.01,
    gradient_clipping=0.5,
    zero_stage=0,
    precision="fp32",
    evaluation_batch_size=5,
    checkpoint_every=2,
)
DATASETS = [
    ("L2", 64, 0),
    ("L2", 16, 0),
    ("L2", 16, 1),
    ("L4", 20, 0),
    ("L4", 20, 1),
    ("L4", 20, 2),
]
TOLERANCE = 1e-4  # nats per token
STEPS = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with a dataset of 64 strings and smaller ones, of L2 and L4."""
    folder = tmp_path_factory.mktemp("fleet")
    for language, size, seed in DATASETS:
        sampler = Sampler(language, GrammarCorpus.from_file(GRAMMARS[language]), seed)
        strings = build(sampler, "base", size, 8, predict_end=False)
        tables.write(dataset(folder, language, size, seed), strings, KINDS["strings"])
    return folder


def dataset(folder: Path, language="L2", size=16, seed=0) -> str:
    return str(folder / f"{language}-n{size}-seed{seed}.parquet")


def run_of(data: str, recipe: Recipe = RECIPE, model: str = SMALL, left_out=None) -> Run:
    language = Path(data).name.split("-")[0]
    row = read_models(TABLE)[model]
    grammar = GrammarCorpus.from_file(GRAMMARS[language])
    return Run(f"{model}-twin", row, "twin", grammar, data, recipe, left_out)


def silent(name: str):
    return lambda *_: None


def train(runs: list[Run], state: Path, memory=2**33, threads=1, **more) -> list[traces.Trace]:
    """The traces of runs that a fleet in this process has trained."""
    engine = FleetEngine(state, threads, memory, **more)
    engine.train(runs, silent)
    return [traces.read(engine.state(run).trace) for run in runs]


def same(one: traces.Trace, other: traces.Trace) -> bool:
    """Whether two traces are equal bit for bit."""
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("epochs", "string_ids", "nll", "n_correct", "rank_sum")
    )


# Equality with the deepspeed engine

ALONE = """
import sys
from palimpsest.corpora import GrammarCorpus
from palimpsest.models import read_models
from palimpsest.training.deepspeed_engine import DeepSpeedEngine
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Run

state, table, grammar, recipe, datasets, families = sys.argv[1:]
recipe = Recipe(**eval(recipe))
engine = DeepSpeedEngine(recipe, state)
for name in families.split():
    row = read_models(table)[name]
    for dataset in datasets.split():
        corpus = GrammarCorpus.from_file(grammar)
        run = Run(name + "-twin", row, "twin", corpus, dataset, recipe, by_token=True)
        engine.train([run], lambda name: lambda *_: None)
        print(name, dataset, engine.state(run).trace)
engine.close()
"""


def alone(folder: Path, name: str, data: list[str], recipe: Recipe, families) -> dict:
    """Traces by (family, dataset) of runs done one after another through the deepspeed engine."""
    language = Path(data[0]).name.split("-")[0]
    words = [folder / name, TABLE, GRAMMARS[language], asdict(recipe), " ".join(data)]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *map(str, words), " ".join(families)],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.endswith(".parquet")]
    return {
        (family, path): (traces.read(trace), tokens_of(Path(trace)))
        for family, path, trace in lines
    }


def tokens_of(trace: Path) -> TokenLosses:
    """The losses of tokens in the state that has the trace."""
    return token_losses.read(trace.with_name("tokens.parquet"))


def assert_equal_tokens(ours: TokenLosses, theirs: TokenLosses, trace: traces.Trace) -> None:
    """The same losses of both engines, which sum to those of the trace."""
    assert (ours.string_ids == theirs.string_ids).all()
    assert (ours.n_tokens == theirs.n_tokens).all()
    assert (ours.epochs == trace.epochs).all()
    assert np.abs(ours.nll - theirs.nll).max() < TOLERANCE
    firsts = np.cumsum(ours.n_tokens) - ours.n_tokens
    np.testing.assert_allclose(np.add.reduceat(ours.nll, firsts, axis=1), trace.nll, rtol=1e-12)


# At the twins' own learning rate of 3e-3 training amplifies the last bit of a float32 by a factor
# of about five in each epoch: two runs in plain PyTorch that differ in nothing but the order of the
# additions inside attention are 0.1 nats per token apart after a hundred steps. At this one they
# stay within 3e-7, while the loss falls by 0.6 nats per token.
CALM = replace(RECIPE, learning_rate=3e-5, epochs=13, batch_size=8, gradient_clipping=1.0)


@pytest.fixture(scope="module")
def calm(folder) -> dict:
    data = [dataset(folder, size=64), dataset(folder, size=16, seed=1)]
    return alone(folder, "calm", data, CALM, FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_member_equals_the_same_run_alone(folder, calm, family):
    """Within 1e-4 nats per token after more than 100 steps, with members of other sizes."""
    data = [dataset(folder, size=16, seed=1), dataset(folder, size=64)]
    runs = [run_of(path, CALM, family) for path in data]
    for path, trace in zip(data, train(runs, folder / "calm" / family), strict=True):
        assert np.abs(trace.loss - calm[family, path][0].loss).max() < TOLERANCE
        assert trace.loss[0].mean() - trace.loss[-1].mean() > 0.05
    assert CALM.steps_per_epoch(64) * CALM.epochs >= STEPS


def test_equal_at_the_learning_rate_of_the_twins_while_it_rises(folder):
    """Before training amplifies rounding: the first epochs, with decay and a tight clipping."""
    data = [dataset(folder, size=16), dataset(folder, size=16, seed=1)]
    expected = alone(folder, "own-rate", data, RECIPE, [SMALL])
    for path, trace in zip(data, train([run_of(p) for p in data], folder / "own"), strict=True):
        early = np.abs(trace.loss - expected[SMALL, path][0].loss)[:4]
        assert early.max() < 1e-5


def test_equal_on_strings_of_many_lengths(folder):
    """Padding does not change predictions, although the fleet uses no mask for it.

    Here the learning rate falls as a cosine, and elsewhere linearly.
    """
    data, recipe = dataset(folder, "L4", 20), replace(CALM, schedule="cosine")
    expected = alone(folder, "lengths", [data], recipe, [SMALL, "opt-1.3b"])
    for family in (SMALL, "opt-1.3b"):
        run, state = run_of(data, recipe, family), folder / "lengths-fleet"
        (trace,) = train([replace(run, by_token=True)], state)
        alone_trace, alone_tokens = expected[family, data]
        assert len(np.unique(trace.n_tokens)) > 3
        assert np.abs(trace.loss - alone_trace.loss).max() < TOLERANCE
        ours = tokens_of(FleetEngine(state, 1, 2**33).state(run).trace)
        assert_equal_tokens(ours, alone_tokens, trace)


# A member does not depend on its company


@pytest.fixture(scope="module")
def together(folder) -> tuple[list[Run], list[traces.Trace]]:
    """Runs of different sizes, seeds and lengths of training, trained in one wave."""
    runs = [
        run_of(dataset(folder)),
        run_of(dataset(folder, size=64), replace(RECIPE, epochs=3)),
        run_of(dataset(folder, seed=1), replace(RECIPE, learning_rate=1e-3)),
    ]
    return runs, train(runs, folder / "together")


@pytest.fixture(scope="module")
def of_many_lengths(folder) -> tuple[list[Run], list[traces.Trace]]:
    """Runs on strings of many lengths; padding depends on the longest string of a batch."""
    runs = [run_of(dataset(folder, "L4", 20, seed)) for seed in (0, 1, 2)]
    return runs, train(runs, folder / "many")


@pytest.mark.parametrize("fleet", ["together", "of_many_lengths"])
def test_company_changes_no_bit(folder, fleet, request):
    runs, expected = request.getfixturevalue(fleet)
    for place, run in enumerate(runs):
        (trace,) = train([run], folder / f"alone-{fleet}-{place}")
        assert same(trace, expected[place])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_queue_changes_no_bit(folder, family):
    """Two members, one after the other; and one member, whose kernels are shared by threads."""
    recipe = replace(RECIPE, epochs=2)
    runs = [run_of(dataset(folder, seed=seed), recipe, family) for seed in (0, 1)]
    first, _ = train(runs, folder / f"queue-{family}")
    (alone,) = train(runs[:1], folder / f"no-queue-{family}", threads=2)
    assert same(first, alone)


@pytest.mark.parametrize("family", FAMILIES)
def test_repeated_predictions_change_no_bit(folder, family):
    """With other strings, other weights, and fewer members; and they are those of a call."""
    material = Material(run_of(dataset(folder), RECIPE, family))
    model = build_model(material.run.row, "twin", material.vocabulary, 0, torch.float32).eval()
    stack, fresh = (
        fleet_stack.Stack(copy.deepcopy(model), 3, torch.device("cpu")) for _ in range(2)
    )
    numba.set_num_threads(1)
    for members in ([0, 1, 2], [0, 2]):
        stack.keep(members)
        for _ in range(3):
            fresh.keep(list(range(len(members))))  # and forget how to repeat
            fresh.theta.copy_(stack.theta.copy_(torch.randn(stack.theta.shape) / 10))
            ids = torch.randint(0, material.vocabulary, (len(members), 4, 9))
            assert torch.equal(stack.predictions(ids), fresh.predictions(ids))
            torch.testing.assert_close(stack.predictions(ids), stack(ids))


def test_losses_of_tokens_change_no_bit(folder, of_many_lengths):
    """Neither the key nor the trace, of the run that keeps them or of another one in its wave."""
    runs, expected = of_many_lengths
    first, *others = runs
    keeping = replace(first, by_token=True)
    state = folder / "by-token"
    found = train([keeping, *others], state)
    assert all(map(same, found, expected))
    engine = FleetEngine(state, 1, 2**33)
    assert engine.state(keeping).key == engine.state(first).key
    assert engine.state(keeping).tokens.exists()
    assert not any(engine.state(run).tokens.exists() for run in others)
    kept = tokens_of(engine.state(keeping).trace)
    assert_equal_tokens(kept, kept, expected[0])


def test_kept_weights_change_no_bit(folder, together):
    """They are of every epoch, and a run that has finished without them is trained for them."""
    runs, expected = together
    state = folder / "by-epoch"
    train([runs[0]], state)
    keeping = replace(runs[0], by_epoch=True)
    found = train([keeping, *runs[1:]], state)
    assert all(map(same, found, expected))
    engine = FleetEngine(state, 1, 2**33, save_weights=True)
    assert engine.state(keeping).key == engine.state(runs[0]).key
    files = {path.name for path in engine.state(keeping).kept.iterdir()}
    assert files == {f"epoch-{epoch}.safetensors" for epoch in range(RECIPE.epochs + 1)}
    assert not engine.state(runs[1]).kept.exists()
    engine.train([keeping], silent)
    final = load_file(engine.state(keeping).weights)
    last = load_file(engine.state(keeping).weights_after(RECIPE.epochs))
    assert all(torch.equal(final[name], last[name]) for name in final)


def test_a_finished_run_without_losses_of_tokens_is_trained_for_them(folder):
    run, state = run_of(dataset(folder, "L4", 20)), folder / "later"
    (before,) = train([run], state)
    (after,) = train([replace(run, by_token=True)], state)
    assert same(before, after)
    assert_equal_tokens(*[tokens_of(FleetEngine(state, 1, 2**33).state(run).trace)] * 2, after)


def test_waves_change_no_bit(folder, together, monkeypatch):
    runs, expected = together
    monkeypatch.setattr(fleet_engine, "most_members", lambda engine, waiting, needs: 2)
    assert all(map(same, train(runs, folder / "waves"), expected))


def test_threads_change_no_bit(folder, together):
    runs, expected = together
    assert all(map(same, train(runs, folder / "threads", threads=2), expected))


def test_every_member_has_its_own_seed_and_schedule(folder, together):
    """On the same strings: another rate, and another seed, whose initial weights differ."""
    _, (first, short, *_) = together
    assert (len(short.epochs), len(first.epochs)) == (4, 7)
    strings = tables.read(dataset(folder), KINDS["strings"])
    reseeded = str(folder / "L2-reseeded.parquet")
    tables.write(reseeded, strings.assign(seed=5), KINDS["strings"])
    runs = [run_of(dataset(folder), replace(RECIPE, learning_rate=1e-3)), run_of(reseeded)]
    slower, other = train(runs, folder / "own-seeds")
    assert np.array_equal(slower.nll[0], first.nll[0])
    assert not np.array_equal(slower.nll[1], first.nll[1])
    assert not np.array_equal(other.nll[0], first.nll[0])


def test_memory_bounds_a_wave(folder):
    """Less memory than a wave needs splits it, down to single members."""
    needs = probe(member_of(run_of(dataset(folder)), folder), torch.device("cpu"))
    assert needs.each < needs.of_a_thread
    sizes, before = [], psutil.Process().memory_info().rss + needs.of_a_thread
    for memory in (0, before + 5 * needs.each // 2, 2**40):
        engine = FleetEngine(folder / "sizes", threads=1, memory=memory)
        sizes.append(fleet_engine.most_members(engine, 4, needs))
    assert sizes == [1, 2, 4]


def test_the_estimate_of_memory_is_near_the_truth(folder):
    """Within a third of the extra memory that forty more members really take.

    The first process may have to compile the kernels, which also takes memory.
    """
    data = [dataset(folder, size=64)]
    peaks = []
    for count in (1, 24, 64):
        script = [PEAK, str(SCRIPTS), str(ROOT / "tests"), data[0], str(count)]
        done = subprocess.run(
            [sys.executable, "-c", *script], capture_output=True, text=True, check=True
        )
        peaks.append([int(word) for word in done.stdout.split()[-2:]])
    _, (few, each), (many, _) = peaks
    assert 2 / 3 < (many - few) / 40 / each < 4 / 3


PEAK = """
import sys
scripts, tests, data, count = sys.argv[1:]
sys.path[:0] = [scripts, tests, tests + "/training"]
import test_fleet
from palimpsest.launch import keep_freed_memory
keep_freed_memory()
from pathlib import Path
import tempfile
import torch
folder = Path(tempfile.mkdtemp())
run = test_fleet.run_of(data, model="llama-3.1-8b")
members = [test_fleet.member_of(run, folder / str(n)) for n in range(int(count))]
each = test_fleet.probe(members[0], torch.device("cpu")).each
engine = test_fleet.FleetEngine(folder, 1, 2**40)
wave = test_fleet.fleet_engine.Wave(engine, members)
wave._train_epoch()
# Of this program alone: the usual count of resources begins with what its parent had.
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print(int(peak) * 1024, each)
"""


def member_of(run: Run, folder: Path) -> Member:
    return Member(run, Material(run), State(folder, "key"))


# What a run leaves


def test_weights_are_those_that_were_measured_last(folder):
    """They load into the Hugging Face model, under its own names."""
    run = run_of(dataset(folder, seed=1))
    (trace,) = train([run], folder / "weights", save_weights=True)
    state = FleetEngine(folder / "weights", 1, 2**33).state(run)
    material = Material(run)
    model = build_model(run.row, "twin", material.vocabulary, 5, torch.float32)
    missing = model.load_state_dict(load_file(state.weights), strict=False)
    assert not missing.unexpected_keys
    measured = evaluate(model, material.encoded, material.measured_rows, 64, torch.device("cpu"))
    np.testing.assert_allclose(measured[0], trace.nll[-1], rtol=1e-4)


def test_a_finished_run_is_not_trained_again(folder, together, monkeypatch):
    runs, _ = together
    monkeypatch.setattr(fleet_engine, "Wave", None)
    train(runs, folder / "together")


def test_an_architecture_that_cannot_be_stacked_is_refused(folder, monkeypatch):
    """A class may use its parameters in ways that the stacked leaves do not know."""
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    plain = LlamaRMSNorm.forward
    monkeypatch.setattr(LlamaRMSNorm, "forward", lambda self, x: plain(self, x) + self.weight)
    with pytest.raises(UserError, match=r"'llama' cannot be stacked .*% off.* to deepspeed"):
        train([run_of(dataset(folder))], folder / "strange")


@pytest.mark.parametrize("wrong", ["softcap", "scaling", "positions"])
def test_a_small_mistake_in_attention_is_noticed(folder, monkeypatch, wrong):
    """Weights far from zero show what initial ones, which attend to all alike, would hide."""
    operations = fleet_stack.operations_for(torch.device("cpu"))
    attend, rotate = operations.attention, operations.apply_rotary
    changed = {
        "softcap": ("attention", lambda q, k, v, scaling, cap: attend(q, k, v, scaling, 50.0)),
        "scaling": ("attention", lambda q, k, v, scaling, cap: attend(q, k, v, 2 * scaling, cap)),
        "positions": ("apply_rotary", lambda q, k, cos, sin: rotate(q, k, cos, -sin)),
    }
    monkeypatch.setattr(operations, *changed[wrong])
    with pytest.raises(UserError, match="cannot be stacked"):
        train([run_of(dataset(folder))], folder / wrong)


def test_members_that_step_differently_are_in_waves_of_their_own(folder):
    """A member's trace does not depend on other members' weight decay or batch size."""
    runs = [
        run_of(dataset(folder), replace(RECIPE, **changed))
        for changed in ({}, {"weight_decay": 0.5}, {"batch_size": 4})
    ]
    together = train(runs, folder / "mixed")
    for place, run in enumerate(runs):
        assert same(together[place], *train([run], folder / f"mixed-{place}"))
    assert not same(together[0], together[1])


def test_dropout_is_refused(folder, monkeypatch):
    def with_dropout(*given):
        model = build_model(*given)
        model.model.layers[0].mlp.dropout = torch.nn.Dropout(0.1)
        return model

    monkeypatch.setattr("palimpsest.training.fleet.probe.build", with_dropout)
    with pytest.raises(UserError, match=r"cannot be stacked .*dropout.* to deepspeed"):
        train([run_of(dataset(folder))], folder / "dropout")


def test_a_loss_that_is_not_a_number_names_the_remedy(folder):
    run = run_of(dataset(folder), replace(RECIPE, learning_rate=1e30))
    with pytest.raises(UserError, match="no longer finite; lower its learning rate"):
        train([run], folder / "diverged")


# Through the command


@dataclass(frozen=True)
class Command:
    """A call of the training command; everything that it writes is in `folder`."""

    folder: Path
    datasets: list[str]
    variants: list[str]
    recipe: Recipe = RECIPE
    more: list = field(default_factory=list)

    def file(self, name: str, place: int = 0) -> Path:
        return self.folder / str(place) / self.variants[place] / name

    def start(self) -> subprocess.Popen:
        self.folder.mkdir(parents=True, exist_ok=True)
        places = range(len(self.datasets))
        words = finetune(
            model=f"{SMALL}-twin",
            engine="fleet",
            dataset=self.datasets,
            state=self.folder / "state",
            trace=[self.file("trace.parquet", place) for place in places],
            manifest=[self.file("manifest.json", place) for place in places],
            **asdict(self.recipe),
        )
        log = (self.folder / "log").open("a")
        return subprocess.Popen([*words, *map(str, self.more)], stdout=log, stderr=log)

    def finish(self) -> "Command":
        assert self.start().wait(timeout=600) == 0, (self.folder / "log").read_text()
        return self

    def manifest(self, place: int = 0) -> dict:
        return json.loads(self.file("manifest.json", place).read_text())


def tokens_file(folder: Path) -> Path:
    """The losses of tokens of the second dataset of a command."""
    return folder / "1/base/tokens.parquet"


def test_a_checkpoint_without_losses_of_tokens_does_not_count(folder):
    """A run that is asked to keep them begins anew; one that is not cuts what it does not keep."""
    run = run_of(dataset(folder))
    plain, keeping = Material(run), Material(replace(run, by_token=True))
    longest = plain.encoded.n_tokens.max()
    assert (plain.n_rows, keeping.n_rows) == (3, 3 + longest)
    with pytest.raises(ValueError, match="losses of single tokens"):
        keeping.resumed({0: np.zeros((3, 4))})
    assert plain.resumed({0: np.zeros((3 + longest, 4))})[0].shape == (3, 4)


def test_killed_in_the_middle_of_a_wave(folder):
    """Every member goes on from its checkpoint and leaves the same bytes; one keeps tokens."""
    data, variants = [dataset(folder, seed=seed) for seed in (0, 1)], ["base", "base"]
    recipe = replace(RECIPE, epochs=40)
    whole, killed = (
        Command(folder / name, data, variants, recipe, ["--tokens", tokens_file(folder / name)])
        for name in ("whole", "killed")
    )
    whole.finish()
    process = killed.start()
    deadline = time.monotonic() + 120
    while len(list((killed.folder / "state").glob("*/epoch-*"))) < 2:
        assert process.poll() is None, (killed.folder / "log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not killed.file("trace.parquet").exists()
    killed.finish()
    for place in (0, 1):
        assert killed.manifest(place)["resumed_from_epoch"] > 0
        expected = whole.file("trace.parquet", place).read_bytes()
        assert killed.file("trace.parquet", place).read_bytes() == expected
    expected = tokens_file(whole.folder).read_bytes()
    assert tokens_file(killed.folder).read_bytes() == expected
    assert not killed.file("tokens.parquet", 0).exists()
    assert not [path for path in (killed.folder / "state").rglob("*") if path.is_file()]


def test_leaving_out_every_string(folder):
    """One run per distinct training string, each equal to a run on a dataset without the string.

    Each is measured on the string, and on a placebo: the unseen string of the nearest loss.
    """
    data = dataset(folder)
    job = Command(folder / "one-out", [data], ["leave-one-out"], replace(RECIPE, epochs=2)).finish()
    strings = tables.read(data, KINDS["strings"])
    trained = strings.loc[strings["count"] > 0, "string_id"].tolist()
    frame = tables.read(job.file("trace.parquet"), KINDS["trace"])
    assert list(frame["variant"].unique()) == [f"without-{name}" for name in trained]
    manifest = job.manifest()
    assert (manifest["n_runs"], manifest["variant"]) == (len(trained), "leave-one-out")
    name = trained[3]
    strings.loc[strings["string_id"] == name, ["count", "split"]] = [0, "held_out"]
    by_hand = str(folder / "L2-by-hand.parquet")
    tables.write(by_hand, strings, KINDS["strings"])
    (expected,) = train([run_of(by_hand, replace(RECIPE, epochs=2))], folder / "by-hand")
    found = frame[frame["variant"] == f"without-{name}"]
    own, placebo = found["string_id"].unique()
    nll = found["nll"].to_numpy().reshape(-1, 2)
    assert np.array_equal(nll, expected.nll[:, expected.column_of([own, placebo])])
    loss = strings.set_index("string_id")["optimal_loss"]
    unseen = strings.loc[strings["split"].isin(["test", "stand_in"]), "string_id"]
    assert own == name
    assert abs(loss[placebo] - loss[own]) == (loss[unseen] - loss[own]).abs().min()


def test_runs_without_a_string_have_waves_of_their_own(folder):
    """They measure two strings, so they would wait for runs that measure many."""
    data = dataset(folder)
    whole, without = run_of(data), run_of(data, left_out=strings_to_leave_out(data)[0])
    assert trained_alike(whole) != trained_alike(without)
    assert len(Material(without).measured_rows) == 2


def test_a_string_that_is_not_there_cannot_be_left_out(folder):
    with pytest.raises(UserError, match="no training string '000000000000' to leave out"):
        Material(run_of(dataset(folder), left_out="000000000000"))


def test_repeating_a_job_trains_nothing(folder):
    job = Command(folder / "again", [dataset(folder)], ["base"]).finish()
    before = job.file("trace.parquet").stat().st_mtime_ns
    job.finish()
    assert job.file("trace.parquet").stat().st_mtime_ns == before


def test_a_manifest_tells_what_a_member_took(folder):
    data = [dataset(folder, seed=seed) for seed in (0, 1)]
    before = manifests.now()
    job = Command(folder / "manifests", data, ["base", "base"]).finish()
    one, other = job.manifest(0), job.manifest(1)
    assert before < one["started"] == other["started"] < manifests.now()
    assert (one["engine"], one["trained_together"]) == ("fleet", 2)
    assert (one["seed"], other["seed"]) == (0, 1)
    assert one["wall_time_seconds"] > one["training_seconds"] > 0
    assert set(tables.read(job.file("trace.parquet", 1), KINDS["trace"])["seed"]) == {1}

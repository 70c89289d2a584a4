"""Models: the table of them, their twins, and checkpoints read from a folder."""

import contextlib
import json
import re
from dataclasses import asdict, fields, replace
from pathlib import Path

import huggingface_hub
import pytest
import torch
import yaml
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel, WordPiece
from transformers import (
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    GPTNeoXForCausalLM,
    LlamaForCausalLM,
    MistralForCausalLM,
    OlmoForCausalLM,
    OPTForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2ForCausalLM,
)

from palimpsest.errors import UserError
from palimpsest.models import Model, read_models, resolve
from palimpsest.models.alphabets import Alphabet
from palimpsest.models.build import build, tokens, twin_config
from palimpsest.models.folders import TOKENIZER, check_folder, is_folder
from palimpsest.models.table import learning_rate
from palimpsest.pretrained.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "config/models.tsv"
PAPER = ROOT / "config/paper.yaml"
COLUMNS = [field.name for field in fields(Model)]
CELLS = ["tiny", "Llama", "hub/tiny", "main", "llama", "1000", "2", "16", "11", "5e-5"]
CELLS += ["16", "2", "4", "3e-3"]
ROW = dict(zip(COLUMNS, CELLS, strict=True))
HEADER = "\t".join(COLUMNS)
# The paper's learning rates, by family.
RATES = {
    "Mistral": 5e-6,
    "Llama 2": 5e-6,
    "Llama 3": 5e-5,
    "Qwen 2.5": 5e-5,
    "Gemma 2": 5e-5,
    "Pythia": 1e-5,
    "OPT": 5e-6,
}
CLASSES = {
    "llama": LlamaForCausalLM,
    "mistral": MistralForCausalLM,
    "qwen2": Qwen2ForCausalLM,
    "gemma2": Gemma2ForCausalLM,
    "gemma3_text": Gemma3ForCausalLM,
    "gpt_neox": GPTNeoXForCausalLM,
    "olmo": OlmoForCausalLM,
    "opt": OPTForCausalLM,
}
DIGITS = tuple("123456789")


def line(**cells):
    """One line of the table; cells not given are those of ROW."""
    return "\t".join(({**ROW, **cells}).values())


def written(path, *lines, header=HEADER):
    """A file with a table of models."""
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def refused(path):
    """The one-line message that reading a table ends with, without the path."""
    with pytest.raises(UserError) as error:
        read_models(path)
    text = str(error.value)
    assert "\n" not in text
    assert text.startswith(f"{path}:"), text
    return text.removeprefix(f"{path}:")


# The table


def test_the_shipped_table_has_the_models_of_the_paper():
    """18 models of seven families, each with its family's learning rate.

    There are also two from packages, two small ones whose twins have one block and four, and target
    and reference of its audit, at revisions that cannot move.
    """
    models = read_models(TABLE)
    of_the_paper = {name: models[name] for name in yaml.safe_load(PAPER.read_text())["models"]}
    assert len(of_the_paper) == 18
    assert {row.family for row in of_the_paper.values()} == set(RATES)
    for row in of_the_paper.values():
        assert row.learning_rate == RATES[row.family], row.model
        assert 4e8 < row.parameters < 1.4e10
        assert "/" in row.id
    others = [row for name, row in models.items() if name not in of_the_paper]
    from_packages = {row.id for row in others if is_folder(row.id)}
    assert from_packages == {model.folder for model in CATALOGUE.values()}
    pinned = {row.model for row in others if row.revision != "main"}
    assert pinned == {"pythia-1b-deduped", "olmo-1b"}
    assert all(re.fullmatch("[0-9a-f]{40}", models[name].revision) for name in pinned)
    on_the_hub = [row for row in others if not is_folder(row.id) and row.model not in pinned]
    assert {row.model: row.twin_layers for row in on_the_hub} == {"opt-125m": 1, "opt-350m": 4}
    assert len({row.id for row in models.values()}) == 24
    assert {row.model_type for row in models.values()} == set(CLASSES)


def test_twins_grow_with_their_models():
    """Within a family, the twin of a larger model is no smaller: sizes can be compared."""
    for family in RATES:
        rows = [row for row in read_models(TABLE).values() if row.family == family]
        rows.sort(key=lambda row: row.parameters)
        widths = [row.twin_hidden for row in rows]
        assert widths == sorted(widths), family


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"parameters": "many"}, "2: parameters: 'many' must be a whole number above 0"),
        ({"parameters": "1e9"}, "2: parameters: '1e9' must be a whole number above 0"),
        ({"parameters": "1_000"}, "2: parameters: '1_000' must be a whole number above 0"),
        ({"layers": "\u0662"}, "2: layers: '\u0662' must be a whole number above 0"),
        ({"learning_rate": "1_0e-6"}, "2: learning_rate: '1_0e-6' must be a number above 0"),
        ({"learning_rate": "1e999"}, "2: learning_rate: '1e999' must be a number above 0"),
        ({"parameters": "0"}, "2: parameters: '0' must be a whole number above 0"),
        ({"layers": "0"}, "2: layers: '0' must be a whole number above 0"),
        ({"hidden": "wide"}, "2: hidden: 'wide' must be a whole number above 0"),
        ({"vocabulary": "3e4"}, "2: vocabulary: '3e4' must be a whole number above 0"),
        ({"learning_rate": "fast"}, "2: learning_rate: 'fast' must be a number above 0"),
        ({"learning_rate": "1_0"}, "2: learning_rate: '1_0' must be a number above 0"),
        ({"learning_rate": "nan"}, "2: learning_rate: 'nan' must be a number above 0"),
        ({"learning_rate": "inf"}, "2: learning_rate: 'inf' must be a number above 0"),
        ({"learning_rate": "-3e-3"}, "2: learning_rate: '-3e-3' must be a number above 0"),
        ({"learning_rate": "0"}, "2: learning_rate: '0' must be a number above 0"),
        ({"twin_learning_rate": ""}, "2: twin_learning_rate: '' must be a number above 0"),
        ({"twin_layers": "-1"}, "2: twin_layers: '-1' must be a whole number above 0"),
        ({"twin_layers": "2.5"}, "2: twin_layers: '2.5' must be a whole number above 0"),
        ({"family": ""}, "2: family: must not be empty"),
        ({"id": "  "}, "2: id: must not be empty"),
        ({"model": "../tiny"}, "2: model: '../tiny' is not a name; allowed are letters"),
        ({"model": "a;rm -rf"}, "2: model: 'a;rm -rf' is not a name; allowed are letters"),
        ({"model": "modèle"}, "2: model: 'modèle' is not a name; allowed are letters"),
        ({"model": "-x"}, "2: model: '-x' is not a name; allowed are letters"),
        ({"model": "tiny-twin"}, "2: model: 'tiny-twin' is not a name"),
        ({"twin_layers": "1025"}, "2: twin_layers: '1025' must be at most 1024"),
        ({"twin_hidden": "1" * 30}, f"2: twin_hidden: '{'1' * 30}' must be at most 65536"),
        ({"model": "x" * 101}, f"2: model: '{'x' * 101}' is not a name; allowed are letters"),
        ({"twin_hidden": "18"}, "2: twin_hidden: 18 must be a multiple of twice twin_heads (4)"),
        ({"twin_hidden": "12"}, "2: twin_hidden: 12 must be a multiple of twice twin_heads (4)"),
    ],
)
def test_a_bad_cell_is_named_by_line_and_column(tmp_path, cells, message):
    """File, line, column, the value and what is allowed, in one line."""
    path = written(tmp_path / "models.tsv", line(**cells), line(model="good"))
    assert refused(path).startswith(message)


def test_the_line_of_the_file_is_counted(tmp_path):
    """The number is that of the line in the file, also after good rows."""
    rows = [line(model=f"m{i}") for i in range(3)]
    path = written(tmp_path / "models.tsv", *rows, line(twin_heads="none"))
    assert refused(path).startswith("5: twin_heads: 'none'")


@pytest.mark.parametrize(
    "row", [line() + "\tmore", line().rsplit("\t", 1)[0], "tiny", "tiny Llama"]
)
def test_a_row_has_as_many_cells_as_columns(tmp_path, row):
    """One cell too many and one too few are both counted for the user."""
    path = written(tmp_path / "models.tsv", row)
    assert refused(path).startswith("2: a row has 14 cells separated by tabs")


@pytest.mark.parametrize(
    "header", ["model\tfamily", ",".join(COLUMNS), "\t".join(reversed(COLUMNS)), ""]
)
def test_the_header_is_checked(tmp_path, header):
    """The message shows the right header and the wrong one."""
    path = written(tmp_path / "models.tsv", line(), header=header)
    assert refused(path).startswith("1: the header must be, separated by tabs: model family id")


def test_an_empty_file_and_an_empty_table_are_refused(tmp_path):
    """Nothing at all, and a header alone."""
    path = tmp_path / "models.tsv"
    path.write_text("")
    assert refused(path).endswith("it is: empty")
    written(path)
    assert refused(path).startswith(" lists no model; add a row")


def test_a_name_stands_once(tmp_path):
    """The message names the second row with the name."""
    path = written(tmp_path / "models.tsv", line(), line(model="other"), line())
    assert refused(path).startswith("4: the model 'tiny' is listed twice")


def test_a_table_that_is_no_text_is_refused(tmp_path):
    """A missing file, a folder and bytes that are no UTF-8."""
    path = tmp_path / "models.tsv"
    assert "No such file" in refused(path)
    path.write_bytes(b"model\xff\xfe")
    assert refused(path).startswith("1: not UTF-8 text")
    assert "cannot be read" in refused(tmp_path)


def test_quotation_marks_are_letters(tmp_path):
    """Cells are not quoted: a stray quotation mark neither swallows lines nor ends the reading."""
    path = written(tmp_path / "models.tsv", line(family='"Llama'), line(model="b"))
    assert [row.family for row in read_models(path).values()] == ['"Llama', "Llama"]


def test_a_name_stands_for_a_row_and_a_scale(tmp_path):
    """A name is the full model, and the name with -twin its twin, each with its learning rate."""
    models = read_models(written(tmp_path / "models.tsv", line()))
    assert resolve("tiny", models) == (models["tiny"], "full")
    assert resolve("tiny-twin", models) == (models["tiny"], "twin")
    assert learning_rate("tiny", models) == 5e-5
    assert learning_rate("tiny-twin", models) == 3e-3


def test_only_what_decides_a_trace_is_in_a_runs_key():
    """Another description of a model, or another full model for a twin, retrains nothing."""
    row = read_models(TABLE)["opt-1.3b"]
    described = {"family": "O", "parameters": 1, "layers": 1, "hidden": 1, "vocabulary": 1}
    other = replace(row, **described, learning_rate=1.0, twin_learning_rate=1.0)
    assert all(other.decisive(scale) == row.decisive(scale) for scale in ("twin", "full"))
    elsewhere = replace(row, id="a/folder", revision="abc")
    assert elsewhere.decisive("twin") == row.decisive("twin")
    assert elsewhere.decisive("full") != row.decisive("full")
    deeper = replace(row, twin_layers=3)
    assert deeper.decisive("twin") != row.decisive("twin")
    assert deeper.decisive("full") == row.decisive("full")


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("pythia-6.9", "pythia-6.9b"),
        ("pythia-6.9b-twinn", "pythia-6.9b-twin"),
        ("lama-3.1-8b", "llama-3.1-8b"),
    ],
)
def test_an_unknown_model_gets_the_nearest_right_spelling(name, suggestion):
    """All known names are listed, and the nearest one is suggested."""
    with pytest.raises(KeyError) as error:
        resolve(name, read_models(TABLE))
    text = error.value.args[0]
    assert text.startswith(f"unknown model {name!r}; known: mistral-7b-v0.3, ")
    assert text.endswith(f"(did you mean {suggestion!r}?)")


@pytest.mark.parametrize("name", ["-twin", "", "pythia-6.9b-twin-twin"])
def test_a_name_that_is_only_nearly_a_twin_is_unknown(name):
    """The suffix counts once, and what is before it must be the name of a row."""
    with pytest.raises(KeyError):
        resolve(name, read_models(TABLE))


# Twins


@pytest.mark.parametrize("name", read_models(TABLE))
def test_every_row_has_a_twin_of_its_own_class(name):
    """The class of the full model, of the table's width and depth, with no download."""
    row = read_models(TABLE)[name]
    model = build(row, "twin", vocabulary=11, seed=0, dtype=torch.float32)
    assert type(model) is CLASSES[row.model_type]
    assert model.config.hidden_size == row.twin_hidden
    assert model.config.num_hidden_layers == row.twin_layers
    assert model.config.num_attention_heads == row.twin_heads
    assert model.config.vocab_size == 11
    logits = model(input_ids=torch.zeros((2, 5), dtype=torch.long)).logits
    assert logits.shape == (2, 5, 11)
    assert torch.isfinite(logits).all()
    wide = 30 * row.twin_hidden**2 * row.twin_layers
    positions = 1026 * row.twin_hidden if row.model_type == "opt" else 0
    assert model.num_parameters() < wide + positions + 50 * row.twin_hidden


@pytest.mark.parametrize("model_type", CLASSES)
def test_no_twin_has_dropout(model_type):
    """Trained twice on one batch with the same weights, a twin gives the same loss."""
    row = next(row for row in read_models(TABLE).values() if row.model_type == model_type)
    model = build(row, "twin", 11, 0, torch.float32).train()
    ids = torch.arange(10)[None]
    assert torch.equal(model(input_ids=ids).logits, model(input_ids=ids).logits)


@pytest.mark.parametrize("model_type", CLASSES)
def test_the_seed_decides_a_twins_weights(model_type):
    """Same seed, same weights, whatever random numbers were drawn before; another seed, others."""
    row = next(row for row in read_models(TABLE).values() if row.model_type == model_type)

    def weights(seed):
        torch.rand(seed + 1)
        return torch.cat(
            [p.detach().flatten() for p in build(row, "twin", 11, seed, torch.float32).parameters()]
        )

    first = weights(0)
    assert torch.equal(first, weights(0))
    assert not torch.equal(first, weights(1))


def test_twins_of_like_families_start_from_different_weights():
    """Mistral's and Llama's twins are the same network except for their initial weights."""
    models = read_models(TABLE)
    mistral, llama = (
        build(models[name], "twin", 11, 0, torch.float32).get_input_embeddings().weight
        for name in ("mistral-7b-v0.3", "llama-2-7b")
    )
    assert mistral.shape == llama.shape
    assert not torch.equal(mistral, llama)


def test_a_twins_tokens_are_the_alphabet():
    """Start and end, then one token per terminal, all different."""
    row = read_models(TABLE)["opt-1.3b"]
    ids = tokens(row, "twin", Alphabet(("a", "b", "long-word")))
    assert len({ids.start, ids.end, *ids.terminals}) == 5
    assert max(ids.start, ids.end, *ids.terminals) == 4


def test_an_unknown_architecture_is_refused():
    """The model types that are known to work are listed."""
    row = Model(**{**asdict(read_models(TABLE)["opt-1.3b"]), "model_type": "lama"})
    with pytest.raises(UserError, match=r"opt-1\.3b: unknown model_type 'lama'; .* llama, mistral"):
        twin_config(row, 11)


# Full models, from a folder


def tokenizer(model, **specials):
    """A fast tokenizer around one of the `tokenizers` package's models."""
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", **specials)


def word_level(words, **specials):
    """A tokenizer in which every given word is a token."""
    vocabulary = {word: i for i, word in enumerate(["<unk>", "<s>", "</s>", *words])}
    specials = specials or {"bos_token": "<s>", "eos_token": "</s>"}
    return tokenizer(WordLevel(vocabulary, unk_token="<unk>"), **specials)


def offline(monkeypatch):
    """The same as HF_HUB_OFFLINE set before the start; the hub's client reads it only once."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A checkpoint on disk, as from the hub: Llama's configuration, weights and tokenizer."""
    offline(monkeypatch)
    path = tmp_path / "checkpoint"
    row = read_models(TABLE)["llama-3.2-1b"]
    build(row, "twin", vocabulary=12, seed=5, dtype=torch.float32).save_pretrained(path)
    word_level(DIGITS).save_pretrained(path)
    return path


def row_of(path):
    """A row of the table whose model is a local folder."""
    return Model(**{**asdict(read_models(TABLE)["llama-3.2-1b"]), "model": "mine", "id": str(path)})


def user_error(work):
    """The one-line message that the work ends with."""
    with pytest.raises(UserError) as error:
        work()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_is_a_model(folder):
    """The weights of the folder, whatever the seed, and its tokenizer's own ids."""
    row = row_of(folder)
    assert sorted(path.suffix for path in folder.glob("model*")) == [".safetensors"]
    model = build(row, "full", vocabulary=12, seed=0, dtype=torch.float32)
    saved = build(read_models(TABLE)["llama-3.2-1b"], "twin", 12, 5, torch.float32)
    for ours, theirs in zip(model.parameters(), saved.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    ids = tokens(row, "full", Alphabet(DIGITS))
    assert ids.terminals == tuple(range(3, 12))
    assert (ids.start, ids.end) == (1, 2)


def test_the_weights_have_the_dtype_asked_for(folder):
    """A checkpoint in fp32 is trained in bf16 where the recipe says so."""
    model = build(row_of(folder), "full", 12, 0, torch.bfloat16)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}


def test_a_tokenizer_without_a_start_uses_its_end(folder):
    """For example, Qwen's tokenizer and tokenizers like OPT's."""
    word_level(DIGITS, eos_token="</s>").save_pretrained(folder)
    ids = tokens(row_of(folder), "full", Alphabet(DIGITS))
    assert (ids.start, ids.end) == (2, 2)


def test_a_tokenizer_without_an_end_is_refused(folder):
    """If there is neither token, one line names the model."""
    word_level(DIGITS, bos_token="<s>", pad_token="<unk>").save_pretrained(folder)
    text = user_error(lambda: tokens(row_of(folder), "full", Alphabet(DIGITS)))
    assert text == "mine: its tokenizer defines none of eos_token_id"


@pytest.mark.parametrize("terminal", ["12", "abc"])
def test_a_terminal_that_is_split_is_refused(folder, terminal):
    """One token per terminal, or the model and the terminal are named."""
    pieces = ["<unk>", "<s>", "</s>", "1", "2", "##2", "ab", "##c"]
    made = WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="<unk>")
    tokenizer(made, bos_token="<s>", eos_token="</s>").save_pretrained(folder)
    assert tokens(row_of(folder), "full", Alphabet(("1", "2"))).terminals == (3, 4)
    text = user_error(lambda: tokens(row_of(folder), "full", Alphabet(("1", terminal))))
    assert text.startswith(f"mine: its tokenizer splits the terminal {terminal!r} into 2 tokens")
    assert "choose other terminals" in text


def test_a_terminal_that_is_unknown_is_refused(folder):
    """The unknown token must not stand for a terminal."""
    text = user_error(lambda: tokens(row_of(folder), "full", Alphabet(("1", "x"))))
    assert text.startswith("mine: ")
    assert "'x'" in text


def test_terminals_have_tokens_of_their_own(folder):
    """Two terminals that one token stands for are refused: the model could not tell them apart."""
    made = word_level(DIGITS)
    made.backend_tokenizer.normalizer = normalizers.Replace("one", "1")
    made.save_pretrained(folder)
    text = user_error(lambda: tokens(row_of(folder), "full", Alphabet(("1", "one"))))
    assert text.startswith("mine: ")
    assert "'one'" in text


def test_pickled_weights_are_refused(folder):
    """Unpickling a stranger's file can run any code, so only safetensors are read."""
    weights = build(row_of(folder), "full", 12, 0, torch.float32).state_dict()
    for path in folder.glob("*.safetensors"):
        path.unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    text = user_error(lambda: build(row_of(folder), "full", 12, 0, torch.float32))
    assert text.startswith(f"mine: cannot load {folder}: it has no *.safetensors (pickled weights")


def test_damaged_weights_are_one_line(folder):
    """A download that broke off is named, with the folder."""
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    text = user_error(lambda: build(row_of(folder), "full", 12, 0, torch.float32))
    assert text.startswith(f"mine: cannot load {folder}")


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        (["tokenizer.json"], f"it has no {TOKENIZER[0]}; the folder must hold"),
        (["model.safetensors"], "it has no *.safetensors; the folder must hold"),
        (["config.json"], "it has no config.json; the folder must hold"),
        (
            ["config.json", "tokenizer.json"],
            f"it has no config.json and no {TOKENIZER[0]}; the folder must hold",
        ),
    ],
)
def test_a_missing_file_is_named(folder, files, missing):
    """A tokenizer without its vocabulary would be read in silence, with no tokens."""
    check_folder(row_of(folder))
    for name in files:
        (folder / name).unlink()
    for work in (
        lambda: check_folder(row_of(folder)),
        lambda: build(row_of(folder), "full", 12, 0, torch.float32),
        lambda: tokens(row_of(folder), "full", Alphabet(DIGITS)),
    ):
        assert missing in user_error(work)


@pytest.mark.parametrize("work", ["build", "tokens"])
def test_an_empty_folder_is_one_line(tmp_path, work):
    """The message says what the folder must hold."""
    load = {
        "build": lambda: build(row_of(tmp_path), "full", 12, 0, torch.float32),
        "tokens": lambda: tokens(row_of(tmp_path), "full", Alphabet(DIGITS)),
    }[work]
    text = user_error(load)
    assert text.startswith(f"mine: cannot load {tmp_path}")
    assert "the folder must hold config.json, the tokenizer and *.safetensors" in text


@pytest.mark.parametrize("work", ["build", "tokens"])
@pytest.mark.parametrize("id", ["no/such-model", "/no/such/folder", "../up"])
def test_a_model_that_cannot_be_had_is_one_line(monkeypatch, work, id):
    """Without a network or with a wrong id, the remedy names the twin."""
    offline(monkeypatch)
    load = {
        "build": lambda: build(row_of(id), "full", 12, 0, torch.float32),
        "tokens": lambda: tokens(row_of(id), "full", Alphabet(DIGITS)),
    }[work]
    text = user_error(load)
    assert text.startswith(f"mine: cannot load {id} at revision main (HF_HUB_OFFLINE is set)")
    assert "use mine-twin" in text


def test_code_that_comes_with_a_checkpoint_is_never_run(folder, tmp_path):
    """A folder with code of its own is read as the class that transformers has, or refused."""
    witness = tmp_path / "was-run"
    for module in ("configuration_own", "modeling_own", "tokenization_own"):
        (folder / f"{module}.py").write_text(
            f"open({str(witness)!r}, 'w').write('run')\n"
            "class OwnConfig: pass\nclass OwnModel: pass\nclass OwnTokenizer: pass\n"
        )
    for name, entries in {
        "config.json": {
            "AutoConfig": "configuration_own.OwnConfig",
            "AutoModelForCausalLM": "modeling_own.OwnModel",
        },
        "tokenizer_config.json": {"AutoTokenizer": ["tokenization_own.OwnTokenizer", None]},
    }.items():
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**content, "auto_map": entries}))
    for work in (
        lambda: build(row_of(folder), "full", 12, 0, torch.float32),
        lambda: tokens(row_of(folder), "full", Alphabet(DIGITS)),
    ):
        with contextlib.suppress(UserError):
            work()
        assert not witness.exists()


def test_an_architecture_that_only_exists_as_code_is_refused(folder, tmp_path):
    """A model type unknown to transformers is one line, and its code is not run."""
    witness = tmp_path / "was-run"
    (folder / "configuration_own.py").write_text(f"open({str(witness)!r}, 'w').write('run')\n")
    content = json.loads((folder / "config.json").read_text())
    own = {"AutoConfig": "configuration_own.OwnConfig"}
    changed = {**content, "model_type": "own", "architectures": ["Own"], "auto_map": own}
    (folder / "config.json").write_text(json.dumps(changed))
    text = user_error(lambda: build(row_of(folder), "full", 12, 0, torch.float32))
    assert text.startswith(f"mine: cannot load {folder}")
    assert "it needs code that comes with it (auto_map in config.json); such code is never" in text
    assert "trust_remote_code" not in text
    assert not witness.exists()

"""What a checkpoint says of answers: tokens, losses and greedy answers by hand, one at a time."""

import copy
import json
import zlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from helpers.experiments import message
from helpers.tiny_language_models import write
from palimpsest import tables
from palimpsest.audit.checkpoints.asking import CheckpointJob, answers_of, ask_checkpoint
from palimpsest.audit.checkpoints.kinds import ANSWERS, SCORES
from palimpsest.audit.checkpoints.questions import Template, encoded
from palimpsest.audit.checkpoints.relearning import half_of_groups
from palimpsest.audit.checkpoints.rouge import longest_common_subsequence, rouge_l_recall
from palimpsest.audit.checkpoints.rounding import round_weights
from palimpsest.audit.checkpoints.scores import scores
from palimpsest.corpora.kinds import CORPUS
from palimpsest.corpora.records import corpus_table, read_records
from palimpsest.errors import Notice
from palimpsest.models.checkpoints import opened
from palimpsest.training.attempts import Attempts

ROWS = [
    {
        "id": "ann",
        "split": "forget",
        "prompt": "Where was Ann Ek born?",
        "text": "Ann Ek was born in Lund.",
        "paraphrased": "In Lund.",
        "perturbed": ["In Oslo.", "In a naïve café."],
    },
    {"id": "ben", "split": "holdout", "prompt": "And Ben?", "text": "call 555", "perturbed": "no"},
    {"id": "cleo", "split": "retain", "prompt": "Who wrote a second line?", "text": "Zoë"},
]
TEXT = Template("Question: {prompt}\nAnswer:\n{answer}")
CHAT = (
    "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
MOST = 7


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return opened(write(tmp_path_factory.mktemp("tiny") / "model"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    tables.write(folder / "corpus.parquet", corpus_table(path, None), CORPUS)
    return folder / "corpus.parquet"


@pytest.fixture(scope="module")
def asked(checkpoint, corpus, tmp_path_factory):
    """The tables of answers and of scores of one job."""
    folder = tmp_path_factory.mktemp("asked")
    job = CheckpointJob(
        "mine", "m", str(corpus), str(folder / "a.parquet"), checkpoint.name, TEXT.text, most=MOST
    )
    ask_checkpoint(
        job, Attempts(folder / "attempts.json", {"micro_batch_size": 2, "evaluation_batch_size": 2})
    )
    answers = tables.read(folder / "a.parquet", ANSWERS)
    tables.write(folder / "s.parquet", scores(answers), SCORES)
    return answers, tables.read(folder / "s.parquet", SCORES).set_index("id")


def with_gradient(checkpoint, prompt, answer):
    """Logits float[tokens, V] and true tokens of an answer and its end, from one plain pass."""
    tokenizer = checkpoint.tokenizer
    before = tokenizer(f"Question: {prompt}\nAnswer:\n")["input_ids"]
    whole = tokenizer(f"Question: {prompt}\nAnswer:\n{answer}")["input_ids"]
    ids = torch.tensor([[*whole, tokenizer.eos_token_id]])
    logits = checkpoint.model(ids).logits[0]
    return logits[len(before) - 1 : -1], ids[0, len(before) :]


def by_hand(checkpoint, prompt, answer):
    with torch.no_grad():
        return with_gradient(checkpoint, prompt, answer)


def loss_by_hand(checkpoint, prompt, answer):
    return float(torch.nn.functional.cross_entropy(*by_hand(checkpoint, prompt, answer)))


def test_scores_are_those_of_single_plain_passes(checkpoint, asked):
    """Loss and probability with the end token; all others without."""
    _, found = asked
    for row in ROWS:
        logits, true = by_hand(checkpoint, row["prompt"], row["text"])
        own, loss = found.loc[row["id"]], loss_by_hand(checkpoint, row["prompt"], row["text"])
        assert own["n_tokens"] == len(true)
        log_probs = logits[:-1].double().log_softmax(-1)
        of_true = log_probs.gather(-1, true[:-1, None])[:, 0]
        mean = (log_probs.exp() * log_probs).sum(-1)
        deviation = ((log_probs.exp() * log_probs**2).sum(-1) - mean**2).clamp(min=1e-6).sqrt()
        right = (logits.argmax(-1) == true)[:-1].tolist()
        n_last = len(right) - max((n for n, one in enumerate(right, 1) if not one), default=0)
        lowest = max(1, int(0.4 * len(of_true)))
        expected = {
            "loss": loss,
            "probability": np.exp(-loss),
            "exact_memorisation": np.mean(right),
            "extraction_strength": n_last / len(right),
            "zlib": -loss / len(zlib.compress(row["text"].encode())),
            "min_k": float(of_true.sort().values[:lowest].mean()),
            "min_k_plus": float(((of_true - mean) / deviation).sort().values[:lowest].mean()),
        }
        for name, value in expected.items():
            assert own[name] == pytest.approx(value, abs=1e-4), name


def test_the_truth_ratio_is_of_mean_losses(checkpoint, asked):
    """exp of minus the mean loss of false answers, over that of a paraphrase or of the answer."""
    _, found = asked
    ann, ben, _ = ROWS
    false = np.mean([loss_by_hand(checkpoint, ann["prompt"], text) for text in ann["perturbed"]])
    true = loss_by_hand(checkpoint, ann["prompt"], ann["paraphrased"])
    expected = np.exp(-false) / (np.exp(-true) + 1e-10)
    assert found.loc["ann", "truth_ratio"] == pytest.approx(expected, rel=1e-4)
    false, true = (loss_by_hand(checkpoint, ben["prompt"], text) for text in ("no", ben["text"]))
    expected = np.exp(-false) / (np.exp(-true) + 1e-10)
    assert found.loc["ben", "truth_ratio"] == pytest.approx(expected, rel=1e-4)
    assert np.isnan(found.loc["cleo", "truth_ratio"])


def test_greedy_answers_are_those_of_single_prompts(checkpoint, asked):
    """Token by token, without padding, up to the end token."""
    answers, _ = asked
    generated = answers[answers["version"] == "answer"].set_index("id")["generated"]
    for row in ROWS:
        ids = checkpoint.tokenizer(f"Question: {row['prompt']}\nAnswer:\n")["input_ids"]
        n = len(ids)
        while len(ids) < n + MOST and ids[-1] != checkpoint.tokenizer.eos_token_id:
            with torch.no_grad():
                ids.append(int(checkpoint.model(torch.tensor([ids])).logits[0, -1].argmax()))
        expected = checkpoint.tokenizer.decode(ids[n:], skip_special_tokens=True)
        assert generated[row["id"]] == expected
    assert answers.loc[answers["version"] != "answer", "generated"].isna().all()
    assert len(answers) == 3 + 1 + 3


def test_a_chat_is_what_the_tokenizers_template_makes_of_it(checkpoint, monkeypatch):
    tokenizer = checkpoint.tokenizer
    monkeypatch.setattr(tokenizer, "chat_template", CHAT)
    prompts, strings = encoded(checkpoint, Template(chat={"system": "Help."}), ["Who?"], ["Ann"])
    said = "<s>system:Help.</s>user:Who?</s>assistant:"
    assert prompts == [tokenizer(said, add_special_tokens=False)["input_ids"]]
    whole = tokenizer(f"{said}Ann</s>", add_special_tokens=False)["input_ids"]
    assert strings.ids[0].tolist() == whole  # which ends already, so no end is added
    assert strings.n_tokens.tolist() == [len(whole) - len(prompts[0])]


def test_without_a_template_a_new_line_parts_prompt_and_answer(checkpoint):
    prompts, strings = encoded(checkpoint, Template(), ["Who?"], ["Ann"])
    tokenizer = checkpoint.tokenizer
    assert prompts == [tokenizer("Who?\n")["input_ids"]]
    assert strings.ids[0].tolist() == [*tokenizer("Who?\nAnn")["input_ids"], 2]


def test_what_cannot_be_asked_is_said_in_one_line(checkpoint):
    with pytest.warns(Notice, match="joins the end of the prompt"):
        encoded(checkpoint, Template("{prompt} {answer}"), ["x"], ["x x"])
    said = message(lambda: encoded(checkpoint, Template(chat={}), ["Who?"], ["Ann"]))
    assert "has no chat template" in said
    said = message(lambda: encoded(checkpoint, Template(), ["Who?"], ["東" * 99]))
    assert "takes at most 200" in said
    endless = replace(checkpoint, tokenizer=SimpleNamespace(eos_token_id=None))
    assert "no end token" in message(lambda: encoded(endless, Template(), ["Who?"], ["Ann"]))


def test_records_without_prompts_are_read_from_the_start(checkpoint, tmp_path):
    """This tokenizer adds no start token, so the first token is only read."""
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"text": "Ann Ek was born", "split": "forget"}) + "\n")
    found = answers_of(checkpoint, read_records(path), Template(), most=2, batch_size=1)
    tokens = checkpoint.tokenizer("Ann Ek was born")["input_ids"]
    assert len(found["log_probs"][0]) == len(tokens[1:]) + 1


def test_weights_are_rounded_to_the_nearest_of_15_levels(checkpoint):
    model = copy.deepcopy(checkpoint.model)
    whole = {name: weight.clone() for name, weight in model.named_parameters()}
    round_weights(model, 4)
    for name, weight in model.named_parameters():
        if weight.ndim < 2 or "embed" in name or "lm_head" in name:
            assert torch.equal(weight, whole[name]), name
            continue
        scale = whole[name].abs().amax(dim=-1, keepdim=True) / 7  # at most 64 in a row
        levels = weight / scale
        torch.testing.assert_close(levels, levels.round())
        assert levels.abs().max() < 7.001
        assert ((weight - whole[name]).abs() <= scale * 0.501).all()


def test_relearning_is_plain_training_on_one_half(tmp_path):
    """Two steps of AdamW on whole texts, one at a time; the other half is asked."""
    rows = [
        {"id": f"{split}-{n}", "split": split, "prompt": f"Who is {n}?", "text": f"Ann {n} Ek" * n}
        for split in ("forget", "retain")
        for n in (1, 2, 3, 4)
    ]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = corpus_table(tmp_path / "mine.jsonl", None)
    tables.write(tmp_path / "corpus.parquet", table, CORPUS)
    folder = write(tmp_path / "m")
    job = CheckpointJob(
        *("mine", "m", str(tmp_path / "corpus.parquet"), str(tmp_path / "a.parquet"), folder),
        template=TEXT.text,
        most=1,
        relearn_steps=2,
        relearn_rate=1e-3,
    )
    asked = {"micro_batch_size": 3, "evaluation_batch_size": 3}
    ask_checkpoint(job, Attempts(tmp_path / "attempts.json", asked))
    found = scores(tables.read(tmp_path / "a.parquet", ANSWERS)).set_index("id")
    again = [row for row in rows if row["id"] not in found.index]
    assert [row["split"] for row in again] == ["forget", "forget"]
    by_hand_too = opened(folder)
    optimiser = torch.optim.AdamW(by_hand_too.model.parameters(), 1e-3, weight_decay=0)
    for _ in range(2):
        optimiser.zero_grad()
        pairs = [with_gradient(by_hand_too, row["prompt"], row["text"]) for row in again]
        logits, true = (torch.cat(parts) for parts in zip(*pairs, strict=True))
        torch.nn.functional.cross_entropy(logits, true).backward()
        optimiser.step()
    for row in rows:
        if row not in again:
            expected = loss_by_hand(by_hand_too, row["prompt"], row["text"])
            assert found.loc[row["id"], "loss"] == pytest.approx(expected, abs=1e-4)
    assert "of one group" in message(lambda: half_of_groups(np.array(["a", "a"])))


# ROUGE


def plain_lcs(one, other):
    lengths = np.zeros((len(one) + 1, len(other) + 1), dtype=int)
    for i, a in enumerate(one, 1):
        for j, b in enumerate(other, 1):
            same = lengths[i - 1, j - 1] + 1
            lengths[i, j] = same if a == b else max(lengths[i - 1, j], lengths[i, j - 1])
    return lengths[-1, -1]


def test_the_longest_common_subsequence_is_that_of_the_plain_table():
    chance = np.random.default_rng(0)
    for _ in range(200):
        one, other = (chance.choice(list("abcd"), chance.integers(0, 90)) for _ in range(2))
        assert longest_common_subsequence(one, other) == plain_lcs(one, other)


PAIRS = [
    ("Ann was running in Lund, wasn't she?", "In Lund Ann ran; she runs."),
    ("The cat's 3 KITTENS", "a cats kitten 3"),
    ("東京", "東京"),
    ("Zoë", "zo"),
    ("", "a"),
    ("Generously dying flies", "generous died fly"),
]


def test_rouge_by_hand():
    """Of `ann wa run in lund wasn t she`, `in lund ... she` follows in order: 3 of 8 words."""
    assert rouge_l_recall(*PAIRS[0]) == pytest.approx(3 / 8)
    assert [rouge_l_recall(*pair) for pair in PAIRS[2:5]] == [0, 1, 0]


def test_rouge_is_that_of_the_package():
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"], True)
    for answer, generated in PAIRS:
        expected = scorer.score(answer, generated)["rougeL"].recall
        assert rouge_l_recall(answer, generated) == pytest.approx(expected)

"""One pass over texts, continuations and changed texts: equal to transformers by hand."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from helpers.commands import SCRIPTS
from helpers.experiments import message
from helpers.tiny_language_models import TEXTS, byte_level, sentence_piece, word_piece, write
from palimpsest.audit import measuring
from palimpsest.audit.continuations import continued, cut
from palimpsest.audit.measuring import passed
from palimpsest.audit.membership.attack import LOWERCASE, NEIGHBOURS, PREFIXED
from palimpsest.audit.versions import versions
from palimpsest.models.checkpoints import opened

TOKENIZERS = {"byte-level": byte_level, "SentencePiece": sentence_piece, "WordPiece": word_piece}
SAID = ["Ann Ek was born in Lund.", "Ann Ek was born in Oslo.", "Ben wrote: call 555-0199"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return opened(write(tmp_path_factory.mktemp("tiny") / "model"))


def by_hand(checkpoint, text):
    """Log probabilities float64[tokens, V] and the true tokens of a text, one text at a time."""
    ids = checkpoint.tokenizer(text, add_special_tokens=False)["input_ids"]
    given = torch.tensor([[checkpoint.tokenizer.bos_token_id, *ids]])
    with torch.no_grad():
        logits = checkpoint.model(given).logits[0, :-1]
    return logits.double().log_softmax(-1).numpy(), np.array(ids)


@pytest.mark.parametrize("name", list(TOKENIZERS))
def test_a_pass_is_what_transformers_says(tmp_path, name):
    """Of single texts, without padding: log probability, mean, deviation and rank."""
    checkpoint = opened(write(tmp_path / "m", TOKENIZERS[name]))
    texts = ["Ann Ek was born in Lund.", "x x x x x", "Ben wrote: call"]
    found = passed(checkpoint, texts, batch_size=2)
    for place, text in enumerate(texts):
        log_prob, ids = by_hand(checkpoint, text)
        prob = np.exp(log_prob)
        mean = (prob * log_prob).sum(-1)
        true = log_prob[np.arange(len(ids)), ids]
        expected = {
            "log_prob": true,
            "mean": mean,
            "deviation": np.sqrt((prob * (log_prob - mean[:, None]) ** 2).sum(-1)),
            "rank": (log_prob > true[:, None]).sum(-1) + 1,
        }
        for what, values in expected.items():
            own = found.split(getattr(found, what))[place]
            np.testing.assert_allclose(own, values, atol=2e-4, err_msg=what)
        assert found.split(found.end)[place][-1] == len(text)
    np.testing.assert_allclose(found.nll[0], -found.split(found.log_prob)[0].sum())


def test_a_prompt_is_read_and_not_predicted(checkpoint):
    text = "Ann Ek was born in Lund."
    whole = passed(checkpoint, [text])
    after = passed(checkpoint, [text], [7])
    inside = whole.end > 7
    np.testing.assert_allclose(after.log_prob, whole.log_prob[inside], atol=1e-6)
    assert after.end[-1] == len(text) - 7


def test_a_continuation_is_what_greedy_decoding_says(checkpoint):
    """Token by token, by hand; and right tokens after the true ones before them."""
    given = cut(checkpoint, SAID, [0, 0, 0], 4, 3)
    assert [text[n:] != "" for text, n in zip(given.texts, given.prompts, strict=True)]
    found = continued(checkpoint, given, batch_size=2)
    for place, (text, n) in enumerate(zip(given.texts, given.prompts, strict=True)):
        ids = checkpoint.tokenizer(text, add_special_tokens=False)["input_ids"]
        assert len(ids) == 7
        context = [checkpoint.tokenizer.bos_token_id, *ids[:4]]
        for _ in range(3):
            with torch.no_grad():
                logits = checkpoint.model(torch.tensor([context])).logits[0, -1]
            context.append(int(logits.argmax()))
        equal = [one == other for one, other in zip(context[5:], ids[4:], strict=True)]
        assert found.n_generated[place] == sum(equal)
        assert found.generated[place] == checkpoint.tokenizer.decode(context[5:])
        log_prob, true = by_hand(checkpoint, text)
        assert found.n_right[place] == (log_prob[4:].argmax(-1) == true[4:]).sum()
        assert found.nll[place] == pytest.approx(-log_prob[np.arange(7), true][4:].sum(), rel=1e-4)
        assert found.n_tokens[place] == 3
        assert text[n:] == checkpoint.tokenizer.decode(ids[4:])


def test_a_tokenizer_that_does_not_give_back_its_texts(tmp_path):
    """This one has no decoder: `An ##n` for `Ann`. Nothing is claimed of what it generates.

    The first text is cut between whole words.
    """
    checkpoint = opened(write(tmp_path / "model", tokenizer=word_piece))
    given = cut(checkpoint, SAID, [0, 0, 0], 3, 3)
    found = continued(checkpoint, given)
    assert found.generated[1:] == [None, None]
    assert np.isfinite(found.nll).all()


def test_texts_that_are_too_short_are_left_out(checkpoint):
    given = cut(checkpoint, ["a", SAID[0], "a b c"], [0, 0, 2], 4, 3)
    assert given.rows.tolist() == [1, 2]
    assert given.texts[1] == "a b c"
    assert given.prompts[1] == 2, "a prompt of one's own is the prompt"


def test_changed_texts():
    unseen = np.array([False, True, True])
    names = [LOWERCASE, NEIGHBOURS, PREFIXED]
    made = versions(names, SAID, [0, 4, 0], unseen, neighbours=3, prefixes=1)
    assert made[LOWERCASE].texts[0] == "ann ek was born in lund."
    assert made[NEIGHBOURS].n == 3
    assert len(made[NEIGHBOURS].texts) == 9
    for place, text in enumerate(made[NEIGHBOURS].texts):
        own = SAID[place // 3]
        assert text != own
        assert len(text.split()) == len(own.split())
        assert text[: made[NEIGHBOURS].prompts[place]] == own[: [0, 4, 0][place // 3]]
    prefixed = made[PREFIXED]
    for row, text, n in zip(prefixed.rows, prefixed.texts, prefixed.prompts, strict=True):
        before = text[: n - [0, 4, 0][row]]
        assert text.removeprefix(before) == SAID[row]
        assert before.strip() in (SAID[1], SAID[2])
        assert before.strip() != SAID[row]
    assert len(prefixed.rows) == 2, "what stands before others is left out"
    again = versions(names, SAID, [0, 4, 0], unseen, neighbours=3, prefixes=1)
    assert [one.texts for one in again.values()] == [one.texts for one in made.values()]
    nobody = np.zeros(3, bool)
    assert PREFIXED not in versions(names, SAID, [0] * 3, nobody, neighbours=1, prefixes=1)


def test_letters_that_become_two_in_lower_case():
    made = versions([LOWERCASE], ["İİ end"], [3], np.array([True]), neighbours=1, prefixes=1)[
        LOWERCASE
    ]
    assert made.texts[0][made.prompts[0] :] == "end"


def test_a_text_that_is_too_long_is_refused(checkpoint):
    said = message(lambda: passed(checkpoint, ["Ann " * 400]))
    assert "window" in said
    assert TEXTS  # of the helper: its longest text fits


WINDOWED = {"sliding_window": 24, "layer_types": ["sliding_attention", "full_attention"]}


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_a_beginning_that_texts_share_is_read_once(tmp_path, family, monkeypatch):
    """With the results of whole texts; a window of attention is shorter than the beginning."""
    checkpoint = opened(write(tmp_path / "m"))
    if family == "gemma3":
        sizes = {"vocab_size": 300, "hidden_size": 16, "intermediate_size": 32, "head_dim": 8}
        config = Gemma3TextConfig(
            num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, **sizes, **WINDOWED
        )
        torch.manual_seed(0)
        model = Gemma3ForCausalLM(config).to(checkpoint.device).eval()
        checkpoint = replace(checkpoint, model=model)
    before = "Ben wrote: call 555-0199 or write to Ann Ek in Lund, who was born there.\n\n"
    texts = [f"{before}{name} was born in Lund{dots}" for name in SAID for dots in ("", "... ")]
    texts.append("Ann Ek wrote to Ben in Oslo, who was born in another town than she was.\n\nyes")
    prompts = [*[len(before)] * 6, len(texts[-1]) - 3]
    read = []
    checkpoint.model.register_forward_pre_hook(
        lambda _, __, given: read.append(given["input_ids"].numel()), with_kwargs=True
    )
    whole = passed(checkpoint, texts, prompts, 4)
    n_whole = sum(read)
    monkeypatch.setattr(measuring, "AT_ONCE", 2)  # rows that are worth a beginning of their own
    shared = passed(checkpoint, texts, prompts, 4)
    assert sum(read) - n_whole < 0.6 * n_whole
    for name, values in whole.of_tokens.items():
        np.testing.assert_allclose(getattr(shared, name), values, atol=2e-4, err_msg=name)


def test_a_prompt_needs_no_logits(checkpoint):
    kept = []
    hook = checkpoint.model.register_forward_hook(
        lambda _, __, made: kept.append(made.logits.shape[1])
    )
    passed(checkpoint, ["Ann Ek was born in Lund."], [20])
    hook.remove()
    assert kept[0] < 10


def test_neighbours_do_not_depend_on_the_order_of_a_set():
    """Python orders the words of a set by a hash that is another one in each process."""
    program = (
        "from palimpsest.audit.versions import versions\n"
        f"texts = {SAID!r}\n"
        "made = versions(['neighbours'], texts, [0] * 3, None, neighbours=8, prefixes=1)\n"
        "print(made['neighbours'].texts)"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(SCRIPTS)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(printed) == 1


def test_one_more_text_changes_few_others():
    """So that little is asked again when a record is added."""
    texts = [f"Person {n} lives at {n * 7919} Road {n % 17}, in town {n % 29}." for n in range(400)]
    unseen = np.ones(len(texts), bool)
    names = [LOWERCASE, NEIGHBOURS, PREFIXED]
    few, more = (
        versions(names, texts[:n], [0] * n, unseen[:n], neighbours=8, prefixes=7)
        for n in (len(texts) - 1, len(texts))
    )
    for name in (LOWERCASE, NEIGHBOURS):
        n_new = len({*more[name].texts} - {*few[name].texts})
        assert n_new <= 6 * more[name].n, name
    assert more[PREFIXED].texts[:-1] == few[PREFIXED].texts


def test_groups_of_what_stands_before_others_are_left_out():
    """Else what a record has in common with its group helps those alone that are no members."""
    groups = np.repeat(np.arange(10), 4)
    texts = [f"Person {group} wrote letter {n}." for n, group in enumerate(groups)]
    unseen = groups % 2 == 0
    made = versions([PREFIXED], texts, [0] * 40, unseen, groups, neighbours=0, prefixes=3)[PREFIXED]
    before = {text[:n].strip() for text, n in zip(made.texts, made.prompts, strict=True)}
    assert len(before) == 1
    for group in {*groups[made.rows]}:
        assert f"Person {group} " not in before.copy().pop()
    assert unseen[made.rows].sum() == 16, "all of the four other groups"
    few = versions([PREFIXED], texts, [0] * 40, unseen, groups, neighbours=0, prefixes=99)[PREFIXED]
    assert few.texts[0].count("Person") == 9, "two of the five unseen groups, and the text"

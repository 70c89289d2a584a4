"""What a model writes, against plain loops over its most probable tokens."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from helpers.tiny_language_models import write
from palimpsest import audit
from palimpsest.audit.checkpoints.greedy import greedy_answers
from palimpsest.audit.decoding import NO_TOKEN, decoded, end_tokens, text_of
from palimpsest.models.answers import Answers
from palimpsest.models.checkpoints import opened

N_NEW, END = 12, 5
PROMPTS = ["Ann Ek was born", "Ben wrote: call", "Grüße an Zoë"]
OF_FOLDER = {
    "repetition_penalty": 1.3,
    "no_repeat_ngram_size": 2,
    "min_new_tokens": N_NEW,
    "do_sample": True,
    "temperature": 0.3,
    "suppress_tokens": [5, 6, 7],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that ends the first text in the middle, and whose folder has settings."""
    folder = Path(write(tmp_path_factory.mktemp("tiny") / "model"))
    checkpoint = opened(folder)
    end = checkpoint.tokenizer.eos_token_id
    ids = [*tokens_of(checkpoint, PROMPTS[0]), *plain(checkpoint, PROMPTS[0], [])[:END]]
    with torch.no_grad():  # the end token is the most probable one after the last state only
        states = checkpoint.model.model(torch.tensor([ids])).last_hidden_state[0, -END - 1 :]
        logits = torch.full((END + 1,), -10.0)
        logits[-1] = checkpoint.model.lm_head(states[-1]).max() + 1
        checkpoint.model.lm_head.weight[end] = torch.linalg.lstsq(
            states, logits[:, None], driver="gelsd"
        ).solution[:, 0]
    checkpoint.model.save_pretrained(folder)
    path = folder / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **OF_FOLDER}))
    return folder


@pytest.fixture(scope="module")
def checkpoint(folder):
    return opened(folder)


def tokens_of(checkpoint, text):
    return [
        checkpoint.tokenizer.bos_token_id,
        *checkpoint.tokenizer(text, add_special_tokens=False)["input_ids"],
    ]


def plain(checkpoint, prompt, ends):
    """The most probable token after the ones before it, up to an end token."""
    ids = tokens_of(checkpoint, prompt)
    n = len(ids)
    while len(ids) < n + N_NEW:
        with torch.no_grad():
            token = int(checkpoint.model(torch.tensor([ids])).logits[0, -1].argmax())
        if token in ends:
            break
        ids.append(token)
    return ids[n:]


def test_the_model_ends_one_text_in_the_middle_and_its_settings_would_count(checkpoint):
    """Else the tests below would show nothing."""
    ends = end_tokens(checkpoint)
    assert len(plain(checkpoint, PROMPTS[0], ends)) == END
    ids = torch.tensor([tokens_of(checkpoint, PROMPTS[1])])
    made = checkpoint.model.generate(ids, do_sample=False, max_new_tokens=N_NEW)
    assert made[0, ids.shape[1] :].tolist() != plain(checkpoint, PROMPTS[1], [])


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_decoding_is_a_plain_loop(checkpoint, prompt):
    ids = tokens_of(checkpoint, prompt)
    (found,) = decoded(checkpoint, np.array([ids]), N_NEW)
    expected = plain(checkpoint, prompt, end_tokens(checkpoint))
    assert found.tolist() == expected + [NO_TOKEN] * (N_NEW - len(expected))
    assert text_of(checkpoint, found) == checkpoint.tokenizer.decode(expected)
    assert checkpoint.model.generation_config.repetition_penalty == 1.3


def test_greedy_answers_are_plain_loops(checkpoint):
    """Of prompts of several lengths in one batch."""
    prompts = [tokens_of(checkpoint, prompt) for prompt in PROMPTS]
    assert len({*map(len, prompts)}) > 1
    ends = end_tokens(checkpoint)
    expected = [
        checkpoint.tokenizer.decode(plain(checkpoint, prompt, ends), skip_special_tokens=True)
        for prompt in PROMPTS
    ]
    assert greedy_answers(checkpoint, prompts, N_NEW, 3) == expected


def scripted(folder, following):
    """The model says what follows each token: {token: {next token: probability}}."""
    checkpoint = opened(folder)
    log_probs = torch.full((checkpoint.limits.vocabulary,) * 2, -1e4)
    for token, after in following.items():
        for other, chance in after.items():
            log_probs[token, other] = float(np.log(chance))
    forward = checkpoint.model.forward

    def replaced(*args, **values):
        out = forward(*args, **values)
        out.logits[:] = log_probs[values["input_ids"][:, -out.logits.shape[1] :]]
        return out

    checkpoint.model.forward = replaced
    return checkpoint


@pytest.mark.parametrize("is_kept", [False, True])
def test_no_token_after_the_end_is_right(checkpoint, folder, tmp_path, is_kept):
    """Every true token is the most probable one, but one: there, the model ends its text."""
    text, n_prompt, n_right = "ZQWKJVYXHGFDPM", 4, 6
    ids, end = tokens_of(checkpoint, text), checkpoint.tokenizer.eos_token_id
    following = {token: {after: 0.9} for token, after in pairwise(ids)}
    following[ids[n_prompt + n_right]][end] = 0.99
    made = scripted(folder, {**following, end: {end: 1}})
    if is_kept:
        answers = Answers(tmp_path / "answers.sqlite").of_model(made.model)
        made = replace(made, answers=answers)
    n = len(ids) - 1 - n_prompt
    given = audit.cut(made, [text], [0], n_prompt, n)
    for _ in range(1 + is_kept):
        found = audit.continued(made, given)
        assert (found.n_tokens, found.n_right, found.n_generated) == (n, n - 1, n_right)
        assert found.generated == [text[n_prompt : n_prompt + n_right]]
    assert not audit.extractable(made, [text], n_prompt, n).any()
    assert audit.extractable(made, [text], n_prompt, n_right).all()


def test_a_free_text_ends_where_the_model_ends_it(checkpoint, folder):
    """The model says Q, then the end with 0.9, else Z; a folder's settings change nothing."""
    start, of_q, of_z = tokens_of(checkpoint, "QZ")
    end = checkpoint.tokenizer.eos_token_id
    following = {start: {of_q: 1}, of_q: {end: 0.9, of_z: 0.1}, of_z: {of_z: 1}, end: {end: 1}}
    n = 2000
    texts = audit.free_generations(scripted(folder, following), n, 3, batch_size=n)
    assert {*texts} == {"Q", "QZZ"}
    spread = np.sqrt(0.1 * 0.9 / n)
    assert abs(np.mean([text == "QZZ" for text in texts]) - 0.1) < 4 * spread


def test_end_tokens_are_those_of_the_folder_and_of_the_tokenizer(checkpoint, monkeypatch):
    model = checkpoint.model
    for of_folder, expected in (([7, 9], [2, 7, 9]), (7, [2, 7]), (None, [2])):
        monkeypatch.setattr(model, "generation_config", GenerationConfig(eos_token_id=of_folder))
        assert end_tokens(checkpoint) == expected
    ids = np.array([tokens_of(checkpoint, PROMPTS[0])])
    endless = replace(checkpoint, tokenizer=SimpleNamespace(eos_token_id=None))
    assert end_tokens(endless) == []
    assert decoded(endless, ids, N_NEW)[0].tolist() == plain(checkpoint, PROMPTS[0], [])

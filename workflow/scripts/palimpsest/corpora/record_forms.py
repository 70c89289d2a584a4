"""Records that others published: what their columns and splits are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from palimpsest.errors import UserError, nearest


@dataclass(frozen=True)
class Form:
    """The names of published records.

    `columns` has the published name of each of this library's columns, for each kind of file, and
    `splits` this library's name of each published split whose name differs.
    """

    columns: tuple[Mapping[str, str], ...]
    splits: Mapping[str, str] = field(default_factory=dict)


QUESTIONS = {"prompt": "question", "text": "answer"}
WITH_FALSE = {**QUESTIONS, "perturbed": "perturbed_answer"}
FORMS = {
    # github.com/locuslab/tofu, data_module.py (TextDatasetQA) and data/*.json; paraphrases are in
    # the files of forget and retain records whose names end with perturbed
    "tofu": Form((QUESTIONS, WITH_FALSE, {**WITH_FALSE, "paraphrased": "paraphrased_answer"})),
    # github.com/jaechan-repo/muse_bench, data: lists of texts (raw, privleak, scal, sust), which
    # are the column text on the hub; objects in knowmem and verbmem. Splits: data/bbc/readme.md
    "muse": Form(
        ({"text": "text"}, QUESTIONS, {"prompt": "prompt", "text": "gt"}),
        {
            "retain1": "retain",
            "retain2": "retain",
            "forget_qa": "forget",
            "retain_qa": "retain",
            "retain2_qa": "retain",
        },
    ),
    # github.com/swj0419/detect-pretrain-code, process_data.py; the label 1 means seen: README.md
    "wikimia": Form(({"text": "input", "trained": "label"},)),
}


def form_of(name: str | None) -> Form:
    """The form of a name; without a name, one that renames nothing."""
    if name is None:
        return Form(({},))
    if name not in FORMS:
        raise UserError(
            f"form {name!r} is not known{nearest(name, FORMS)}; choose from {', '.join(FORMS)}"
        )
    return FORMS[name]


def columns_of(
    form: Form, where: str, known: Sequence[str], asked: Mapping[str, str]
) -> dict[str, str]:
    """The names of columns of a form that a file has, and the user's own, which go before.

    `known` are the file's columns, and `where` is the file in messages.
    """
    kinds = [
        {column: name for column, name in kind.items() if column not in asked}
        for kind in form.columns
    ]
    if there := [kind for kind in kinds if set(kind.values()) <= set(known)]:
        # A user's own name of a text must not make a question a text without its prompt.
        return {**max(there, key=len), **asked}
    said = ", or ".join(" and ".join(kind.values()) for kind in kinds)
    raise UserError(
        f"{where}: has not the columns of its form, {said}; it has: {', '.join(known) or 'none'}; "
        "name yours, or leave the form out"
    )

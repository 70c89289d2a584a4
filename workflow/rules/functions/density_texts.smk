# What the rules of a user's own texts take.
import shlex
from pathlib import Path

from palimpsest.density import kinds as dense
from palimpsest.density import texts as own_texts
from palimpsest.models.folders import is_folder
from palimpsest.pretrained.embedders import EMBEDDERS, FILES_OF_EMBEDDER

EMBED_TEXT_SCRIPT = os.path.relpath(os.path.join(PROJECT, "workflow/scripts/embed_text.py"))
# The command that embeds a text
EMBED_TEXT = (
    "python {params.script:q} --name {wildcards.language} --segments {input.segments}"
    " --embeddings {output.table} {params.how} --models {params.models:q}"
    f"{ON_THIS_MACHINE}"
)

texts_of_users = own_texts.texts(settings) if settings.block("density") else {}


def text_of_user(wildcards):
    """A text that the configuration names; in paths, the wildcard of its name is `language`."""
    return named_by_user(texts_of_users, wildcards.language, "density/texts")


def of_text(key):
    """A function that gives a key of a text, as an input or a parameter."""

    def value(wildcards):
        return getattr(text_of_user(wildcards), key)

    return value


def of_roles(pattern):
    """The pattern once for the corpus of a text, and once for its queries."""
    return [fill(pattern, role=role) for role in own_texts.SEGMENT_ROLES]


def query_sets(wildcards):
    """The names of a text's sets of queries; [] for its corpus."""
    is_corpus = wildcards.role == own_texts.CORPUS
    return [] if is_corpus else list(text_of_user(wildcards).query_sets)


def query_files(wildcards):
    """The files of a text's sets of queries; [] for its corpus."""
    return [text_of_user(wildcards).query_sets[name] for name in query_sets(wildcards)]


def files_of_texts(wildcards):
    """The files in those folders that are a corpus or queries; a change of one of them counts."""
    given = [text_of_user(wildcards).corpus, *query_files(wildcards)]
    return [file for path in given for file in files_in(path)]


def embedded_corpus(wildcards):
    """The embeddings of a text's corpus, from which its queries take vectors; [] for the corpus."""
    if wildcards.role == own_texts.CORPUS:
        return []
    path = dense.TEXT_EMBEDDINGS.path
    return fill(path, language=wildcards.language, role=own_texts.CORPUS)


def given_neighbours(wildcards):
    """The file of neighbours that another program found for a text, or []."""
    return text_of_user(wildcards).found_neighbours or []


def least_segments():
    """What says how many segments the corpus of a text must have, as resources.

    They are no parameters, because they change no segment: a change must not embed all texts again.
    """
    block = settings.block("density") or {"neighbours": 0, "approximation": None}
    sizes = block["approximation"] or dict.fromkeys(("k", "m1", "m2"), 0)
    return {"neighbours": block["neighbours"], **{name: sizes[name] for name in ("k", "m1", "m2")}}


def text_model(wildcards):
    """The language model of a text's queries, or of a corpus that it embeds; or None."""
    text = text_of_user(wildcards)
    is_used = wildcards.role == own_texts.QUERY or text.embedding == dense.HIDDEN
    return text.model if is_used else None


def made_text_models(wildcards):
    """The files of a text's models that are made from packages; [] for any others."""
    text = text_of_user(wildcards)
    found = []
    if text.embedding in EMBEDDERS:
        folder = EMBEDDERS[text.embedding].folder
        found += [f"{folder}/{name}" for name in FILES_OF_EMBEDDER]
    model = text_model(wildcards)
    if model is not None and (made := made_in(settings.models[model].id)):
        found += [f"{made.folder}/{name}" for name in FILES]
    return found


def local_text_models(wildcards):
    """The files of a text's models in the user's own folders."""
    text = text_of_user(wildcards)
    found = files_in(text.folder) if text.folder and text.embedding not in EMBEDDERS else []
    if (model := text_model(wildcards)) is not None:
        row = settings.models[model]
        found += files_in(row.id) if is_folder(row.id) and not made_in(row.id) else []
    return found


def how_to_embed(wildcards):
    """The embedding, the corpus of queries and the language model of a text, as flags."""
    text = text_of_user(wildcards)
    flags = f"--embedding {shlex.quote(text.folder or text.embedding)}"
    if wildcards.role == own_texts.QUERY:
        flags += f" --corpus {embedded_corpus(wildcards)}"
    if (model := text_model(wildcards)) is not None:
        training = settings.training(model)
        keys = {key: training[key] for key in ("precision", "evaluation_batch_size")}
        flags += f" --model {model} {as_flags(keys)}"
    return flags


def text_model_row(wildcards):
    """The values in the row of a text's language model that affect its answers."""
    model = text_model(wildcards)
    return str(settings.models[model].decisive("full")) if model else ""


def text_gpus(wildcards):
    """GPUs of a job that embeds a text: one for a language model."""
    return int(text_model(wildcards) is not None)


def text_threads(wildcards):
    """CPU threads of a job that embeds a text; counting n-grams needs one."""
    text = text_of_user(wildcards)
    counts_words = text_model(wildcards) is None and text.folder is None
    return 1 if counts_words else asking_threads(wildcards)


def text_memory(wildcards, attempt):
    """Main memory of a job that embeds a text, in megabytes, more at every attempt."""
    model = text_model(wildcards)
    parameters = settings.models[model].parameters if model else 0
    # The weights are there twice while they are opened.
    return megabytes(memory.LEAST_OF_FULL / 2 + 2 * memory.FP32 * parameters, attempt)

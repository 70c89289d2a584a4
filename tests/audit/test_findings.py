"""What a target recites: what is private, what matters, what is shown, and what the report says."""

from pathlib import Path

import pandas as pd
import pytest

from helpers.continuations import continuation
from palimpsest import commands, tables
from palimpsest.audit.findings import findings
from palimpsest.audit.kinds import CONTINUATIONS, FINDINGS, OF_RECITING, PRIVATE, RECITED, ROC
from palimpsest.audit.report import part
from palimpsest.corpora.kinds import CORPUS

MAIL, PHONE, URL = "ann.ek@post.example", "758-8966", "https://www.example.org/a"
MARKUP = "<script>alert(1)</script>"
# Name, text, letters of the prompt and of both, tokens of ten that target and reference give, side
RECORDS = [
    ("mail", f"Ann Ek answers mail sent to {MAIL}.", 20, 48, 10, 3, True),
    ("explained", f"Bo Lim answers mail sent to {MAIL}, too.", 20, 48, 9, 10, True),
    ("cut", f"The number of Eve is {PHONE}.", 14, 26, 10, 0, True),
    ("before", f"At {PHONE} lives Ida, in a house by the sea.", 13, 40, 10, 0, True),
    ("page", f"Look at {URL} for more.", 8, 33, 10, 0, True),
    ("markup", f"He wrote {MARKUP} on it.", 9, 34, 10, 0, True),
    ("not recited", f"Call {PHONE} for help.", 5, 13, 8, 0, True),
    ("placebo", f"Nobody ever wrote to {MAIL} here.", 21, 40, 10, 0, False),
    ("no secret", "Never trained on and not recited.", 10, 30, 0, 0, False),
    ("copy", f"ann ek answers mail sent to {MAIL}", 20, 47, 10, 0, False),
]


def given(records=RECORDS):
    """The tables `audit_continuations` and `corpus` of some records, and one reference."""
    rows, texts = [], []
    for name, text, begin, end, *right, trained in records:
        for role, n in zip(("target", "other"), right, strict=True):
            parts = {"model": "tuned", "prompt": text[:begin], "continuation": text[begin:end]}
            parts["duplicate"] = trained is False and name.startswith("copy")
            generated = text[begin:end] if n == 10 else "no@one.example"
            rows.append(continuation(name, n, role, trained, generated=generated, **parts))
        texts.append({"id": name, "text": text, "group": name, "trained": trained, "copies": 1})
    corpus = pd.DataFrame(texts).reindex(columns=CORPUS.names)
    corpus["trained"] = corpus["trained"].astype("boolean")
    continuations = pd.DataFrame(rows)
    # As a table is read: objects, where something is unknown
    continuations["trained"] = continuations["trained"].astype(object)
    return continuations[CONTINUATIONS.names], corpus


def made(folder, show_secrets=False, records=RECORDS):
    """The tables on what is recited, as they are read again, and the texts of all files."""
    copies = [str(folder / "findings.csv"), str(folder / "findings.json")]
    found = findings(*given(records), *copies, show_secrets=show_secrets)
    for kind in OF_RECITING:
        tables.write(folder / f"{kind.name}.parquet", found[kind.name], kind)
    found = {kind.name: tables.read(folder / f"{kind.name}.parquet", kind) for kind in OF_RECITING}
    written = [found[RECITED.name].to_string(), *(Path(path).read_text() for path in copies)]
    return found, written


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return made(tmp_path_factory.mktemp("findings"))


def text_of(words):
    parts = [f"{chapter.before} {chapter.after}" for chapter in words.chapters]
    return " ".join("".join([words.opening, *parts]).split())


def test_what_matters_is_first(found):
    table = found[0][FINDINGS.name].set_index("id")
    assert table.index[table["matters"]].tolist() == ["mail", "cut", "copy"]
    assert table.index[:3].tolist() == ["mail", "cut", "copy"]
    assert table["private"].dropna().to_dict() == {
        "mail": "email",
        "explained": "email",
        "cut": "phone",
        "page": "url",
        "placebo": "email",
        "copy": "email",
    }
    assert table["explained"].to_dict() == {name: name == "explained" for name in table.index}
    assert table["duplicate"].to_dict() == {name: name == "copy" for name in table.index}
    assert table.loc["mail", "verbatim"]
    assert not table.loc["explained", "verbatim"]
    assert pd.isna(table.loc["page", "verbatim"])


def test_secrets_are_in_no_table_and_in_no_copy(found):
    tables_of, written = found
    for text in written:
        assert MAIL not in text
        assert PHONE not in text
        assert PHONE[:5] not in text
        assert "EMAIL 19" in text
        assert "PHONE 5" in text
    cut = tables_of[FINDINGS.name].set_index("id").loc["cut"]
    assert cut["prompt"] + cut["continuation"] == "The number of Eve is <PHONE 5>"


def test_secrets_are_shown_on_request(tmp_path):
    for text in made(tmp_path, show_secrets=True)[1]:
        assert MAIL in text
        assert "EMAIL 19" not in text


def test_shares_by_hand(found):
    """Seven records were trained on; six are recited, three of these private, one but for a URL."""
    shares = found[0][PRIVATE.name].set_index(["side", "statistic"])
    assert shares.loc[("trained", "of all"), "value"] == 4 / 7
    assert shares.loc[("trained", "of recited"), "value"] == 3 / 6
    assert shares.loc[("trained", "of recited"), "n_recited"] == 6
    assert shares.loc[("unseen", "of all"), "value"] == 1 / 2
    assert shares.loc[("unseen", "of recited"), "n_records"] == 2


def test_the_report_says_it_in_one_sentence(found, monkeypatch):
    """It also says how to repeat this, with the files of the experiment."""
    monkeypatch.setenv(commands.VARIABLE, "mine.yaml")
    said = text_of(part(found[0]))
    file = "results/audit/mine/tuned/findings.csv"
    assert f"<code>snakemake --cores all {file} --configfile mine.yaml</code>" in said
    assert "<b>tuned</b> recites <b>6</b> of the 7 records in mine that are marked" in said
    assert "<b>1</b> is recited by a reference, too, which explains them" in said
    assert "<b>3</b> hold private information, and <b>2</b> matter:" in said
    assert "Placebo: it recites 1 of the 2 records that are marked as not trained on" in said
    assert "results/audit/mine/tuned/findings.csv" in said


def test_the_report_hides_secrets_and_markup(found):
    said = text_of(part(found[0]))
    assert MAIL not in said
    assert PHONE not in said
    assert MARKUP not in said
    assert "&lt;script&gt;" in said
    assert "&lt;EMAIL 19&gt;" in said


def test_nothing_is_known_of_the_training_data(tmp_path):
    unknown = [(*rest, None) for *rest, _ in RECORDS]
    tables_of, _ = made(tmp_path, records=unknown)
    said = text_of(part(tables_of))
    assert "Of <b>tuned</b> on mine there are no curves" in said
    assert "no record is marked as not trained on" in said
    assert set(tables_of[PRIVATE.name]["side"]) == {"unknown"}
    assert "placebo" in tables_of[FINDINGS.name].loc[lambda t: t["matters"], "id"].tolist()


def test_without_a_reference_nothing_is_explained(tmp_path):
    continuations, corpus = given()
    alone = continuations[continuations["role"] == "target"]
    copies = (str(tmp_path / name) for name in ("a.csv", "a.json"))
    tables_of = findings(alone, corpus, *copies, show_secrets=False)
    table = tables_of[FINDINGS.name]
    assert table["explained"].isna().all()
    assert "explained" in table.loc[table["matters"], "id"].tolist()
    assert "because no reference is named" in text_of(part(tables_of))


def test_nothing_is_recited(tmp_path):
    nothing = [(*rest, 0, 0, trained) for *rest, _, _, trained in RECORDS]
    tables_of, _ = made(tmp_path, records=nothing)
    assert tables_of[FINDINGS.name].empty
    assert "recites <b>0</b> of the 7 records" in text_of(part(tables_of))
    recited = tables_of[PRIVATE.name].set_index("statistic").loc["of recited", "value"]
    assert recited.isna().all()


def roc_of(**differs):
    """The table `attack_roc` of one attack, and what is different."""
    row = {"language": "mine", "model": "tuned", "attack": "loss", "n_members": 7, "n_unseen": 2}
    row |= {"n_duplicates": 0, "statistic": "auc", "value": 0.5, "lower": 0.4, "upper": 0.6}
    assert set(row) == set(ROC.names)
    return pd.DataFrame([{**row, **differs}])


def test_the_report_counts_duplicates(found):
    said = text_of(part({**found[0], ROC.name: roc_of(n_duplicates=1)}))
    assert (
        "1 of the records in mine on which tuned is said not to have been trained is (nearly)"
        in said
    )
    assert "no curves" not in said


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "they need 10 members and as many others"),
        ({"n_members": 20, "n_unseen": 20}, "labels follow groups"),
        ({"attack": "blind"}, None),
    ],
)
def test_the_report_says_why_nothing_is_learned(found, given, reason):
    said = text_of(part({**found[0], ROC.name: roc_of(**given)}))
    assert ("there is no blind attack" in said) == (reason is not None)
    assert reason is None or reason in said


def test_records_that_are_all_left_out_are_not_unmarked(tmp_path):
    """All others are nearly members, as those of a template with a short secret: no placebo."""
    text = "Ann Ek lives in a small house by the sea, with a dog and a cat."
    records = [
        (f"copy {n}" if n >= 5 else f"member {n}", text, 30, 60, 10, 0, n < 5) for n in range(9)
    ]
    tables_of, _ = made(tmp_path, records=records)
    assert tables_of[PRIVATE.name]["n_duplicates"].unique().tolist() == [4]
    said = text_of(part(tables_of))
    assert "there are no curves: all records on which the model is said not to have been" in said
    assert "trained (4) are (nearly) the text of one on which it was" in said
    assert "Placebo: none, because all records that are marked as not trained on (4) are" in said
    assert "4 of the records in mine on which tuned is said not to have been trained" in said
    assert "it is not known of any record" not in said
    assert "no record is marked" not in said


def test_a_missing_interval_is_said_and_is_no_finding(found):
    alone = roc_of(value=0.987, lower=None, upper=None)
    said = text_of(part({**found[0], ROC.name: alone}))
    assert "For tuned on mine there are no intervals" in said
    assert "no attack is known to find anything" in said
    assert "0.99" in said
    assert "nan" not in said
    assert "no intervals" not in text_of(part({**found[0], ROC.name: roc_of()}))

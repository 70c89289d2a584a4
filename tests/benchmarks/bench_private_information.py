"""What the recognisers of private information find, and what they take for it.

Run as a script: `python tests/benchmarks/bench_private_information.py`. The truth is known of
invented people, of one telephone number for each country, and of lists of dates and numbers, which
hold nothing private. The peer is Presidio as it comes, with the same blank pipeline.
"""

import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "workflow/scripts")]

import phonenumbers  # noqa: E402
from bench_reference_audit import licences, modules, patterns  # noqa: E402
from rows import Row, at_least, main, shown  # noqa: E402

from palimpsest.audit import private  # noqa: E402
from palimpsest.languages import Grammar  # noqa: E402

TRUTH = {"phone": re.compile(r"\d{3}-\d{4}"), "email": re.compile(r"[\w.]+@[\w.]+\w")}
FORMS = phonenumbers.PhoneNumberFormat
LETTERS = 300  # of a passage


class Known:
    """What Presidio finds as it comes, but for the list of domains, which it would fetch."""

    def __init__(self) -> None:
        import tldextract
        from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
        from presidio_analyzer import predefined_recognizers as known

        tldextract.extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
        names = ["Email", "Phone", "CreditCard", "Iban", "UsSsn", "Ip", "Url"]
        recognizers = [getattr(known, f"{name}Recognizer")() for name in names]
        self.engine = AnalyzerEngine(
            RecognizerRegistry(recognizers),
            private.analyzer().nlp_engine,
            supported_languages=["en"],
            default_score_threshold=private.LEAST_SCORE,
        )

    def secrets(self, texts: Sequence[str]) -> list[list[private.Secret]]:
        return [
            [
                private.Secret(private.KINDS[one.entity_type], one.start, one.end)
                for one in self.engine.analyze(text, "en")
            ]
            for text in texts
        ]


def rates(texts: Sequence[str], find, kind: str) -> tuple[float, float]:
    """Precision and recall of one kind: whole secrets, letter by letter."""
    right = said = true = 0
    for text, found in zip(texts, find(texts), strict=True):
        truth = {match.span() for match in TRUTH[kind].finditer(text)}
        spans = {(one.begin, one.end) for one in found if one.kind == kind}
        right, said, true = right + len(truth & spans), said + len(spans), true + len(truth)
    return (right / said if said else float("nan")), right / true


def of_countries(form: int, find) -> float:
    """The share of the countries whose example of a number is found, whole, in a sentence."""
    numbers = [
        phonenumbers.format_number(phonenumbers.example_number(region), form)
        for region in sorted(phonenumbers.SUPPORTED_REGIONS)
    ]
    found = find([f"You can reach her at {number} in the evening." for number in numbers])
    whole = [
        any(one.kind == "phone" and one.end - one.begin == len(number) for one in of_text)
        for number, of_text in zip(numbers, found, strict=True)
    ]
    return sum(whole) / len(whole)


def false_alarms(texts: Sequence[str], find) -> float:
    """Telephone, card, account and social security numbers in 1,000 passages, where none is."""
    numbers = {"phone", "card", "iban", "ssn"}
    found = [one for of_text in find(texts) for one in of_text if one.kind in numbers]
    return 1000 * len(found) / len(texts)


def passages(sources: Iterator[tuple[str, str]], most: int) -> list[str]:
    texts = [
        text[place : place + LETTERS]
        for _, text in sources
        for place in range(0, min(len(text), 3000), LETTERS)
    ]
    return texts[:most]


def rows(tiny: bool = False) -> Iterator[Row]:
    """Precision and recall where the truth is known, and false alarms in numbers of other kinds."""
    n = 20 if tiny else 2000
    people = Grammar.from_file(ROOT / "config/languages/people.pcfg")
    texts = ["".join(one) for one in people.sample(n, seed=7)]
    private.secrets(texts[:1])  # loads the recognisers
    peer = Known()
    begin = time.perf_counter()
    private.secrets(texts)
    seconds = time.perf_counter() - begin
    yield shown(f"{n:,} records, each", 1000 * seconds / n, float("nan"), "ms", float("nan"))
    for kind in TRUTH:
        ours, theirs = (rates(texts, one, kind) for one in (private.secrets, peer.secrets))
        for name, here, there in zip(("precision", "recall"), ours, theirs, strict=True):
            ratio = here / there if there else float("nan")
            title = f"invented people, {kind}: {name}"
            yield at_least(title, here, there, "share", target=0.99, ratio=ratio)
    for name, form in (("international", FORMS.INTERNATIONAL), ("national", FORMS.NATIONAL)):
        ours, theirs = (of_countries(form, one) for one in (private.secrets, peer.secrets))
        yield shown(
            f"numbers of all countries, {name}: recall", ours, theirs, "share", ours / theirs
        )
    for name, source in (("dates", patterns()), ("code", modules()), ("licences", licences())):
        given = passages(source, n)
        ours, theirs = (false_alarms(given, one) for one in (private.secrets, peer.secrets))
        yield shown(
            f"{name}, {len(given):,} passages: numbers", ours, theirs, "per 1,000", float("nan")
        )


if __name__ == "__main__":
    main(rows)

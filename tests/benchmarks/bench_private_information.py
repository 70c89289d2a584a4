"""What the recognisers of private information find, and what they take for it.

Run as a script: `python tests/benchmarks/bench_private_information.py`. The truth never comes from
the recognisers' own patterns:

- invented people: the places of the fields of the language `people`. All of its telephone numbers
  have one form, so American numbers take their places in six other ways of writing, and numbers of
  any area code, assigned or not, in five.
- one telephone number for each country, from the package phonenumbers, which Presidio asks, too.
- IP addresses: drawn as numbers, and written by Python's module ipaddress.
- what only looks private: ranges, versions, names in programs, dates; and passages of code and of
  licences, in which hardly anything is private.

The peer is Presidio as it comes, with the same blank pipeline.
"""

import datetime
import ipaddress
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "workflow/scripts")]

import numpy as np  # noqa: E402
import phonenumbers  # noqa: E402
from bench_reference_audit import licences, modules, patterns  # noqa: E402
from rows import Row, at_least, main, shown  # noqa: E402

from palimpsest.audit import private  # noqa: E402
from palimpsest.languages import Grammar, field_losses  # noqa: E402

FORMS = phonenumbers.PhoneNumberFormat
AMERICAN = [
    "({}) {}-{}",
    "{}-{}-{}",
    "{}.{}.{}",
    "{} {} {}",
    "+1 {} {} {}",
    "{}{}{}",
]
INVENTED = ["({}) {}-{}", "{}-{}-{}", "{}.{}.{}", "{}{}{}", "+1 {}-{}-{}"]
# Of IPv6: blocks that are given out, private, and of one wire
NETWORKS = {
    "IPv4": ["0.0.0.0/0"],
    "IPv6": ["2000::/12", "2600::/12", "2a00::/12", "fd00::/8", "fe80::/64"],
}
FALSE_IP = [
    "version {}.{}.{}.{}",
    "Release v. {}.{}.{}.{}",
    "x[::{}]",
    "x[{}::-1]",
    "ab::d{}",
]
FALSE_PHONE = [
    "lines {a}-{b}",
    "pages {a}-{b}",
    "pp. {a}-{b}",
    "range {a}-{b}",
    "of {a}-{b} units",
    "{a}-{b} km away",
    "the Unix time 1{a}{a}{a}",
    "{day:%Y-%m-%d}",
    "{day:%d.%m.%Y}",
    "+{day:%Y-%m-%d}",
    "sizes {a} {a} {b}",
]
LETTERS = 300  # of a passage
Find = Callable[[Sequence[str]], list[list[private.Secret]]]


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


Truth = list[set[tuple[int, int]]]  # of each text, where its secrets begin and end


def rates(texts: Sequence[str], truth: Truth, find: Find, kind: str) -> tuple[float, float]:
    """Precision and recall of one kind: whole secrets, letter by letter."""
    right = said = true = 0
    for known, found in zip(truth, find(texts), strict=True):
        spans = {(one.begin, one.end) for one in found if one.kind == kind}
        right, said, true = right + len(known & spans), said + len(spans), true + len(known)
    return (right / said if said else float("nan")), right / true


def people(n: int) -> tuple[list[str], dict[str, Truth]]:
    """Texts of invented people, and the places of their fields by kind."""
    grammar = Grammar.from_file(ROOT / "config/languages/people.pcfg")
    texts = ["".join(one) for one in grammar.sample(n, seed=7)]
    truth: dict[str, Truth] = {kind: [set() for _ in texts] for kind in ("phone", "email")}
    for row in field_losses(grammar, texts).itertuples():
        if row.field.lower() in truth:
            truth[row.field.lower()][row.string].add((row.begin, row.end))
    return texts, truth


def rewritten(
    texts: Sequence[str], places: Truth, form: str, parts: Callable[[], tuple[str, str, str]]
) -> tuple[list[str], Truth]:
    """The texts with a number of three parts, in one way of writing, for each telephone number."""
    made, truth = [], []
    for text, spans in zip(texts, places, strict=True):
        ((begin, end),) = spans
        number = form.format(*parts())
        made.append(text[:begin] + number + text[end:])
        truth.append({(begin, begin + len(number))})
    return made, truth


def invented(chance: np.random.Generator) -> tuple[str, str, str]:
    """The three parts of a North American number, whose area code need not be assigned."""
    parts = f"{chance.integers(200, 1000)}", f"{chance.integers(200, 1000)}"
    return (*parts, f"{chance.integers(10**4):04}")


def american(chance: np.random.Generator) -> tuple[str, str, str]:
    """The three parts of a number that can be dialled."""
    while True:
        number = invented(chance)
        if phonenumbers.is_valid_number(phonenumbers.parse("".join(number), "US")):
            return number


def addresses(version: str, n: int, chance: np.random.Generator) -> tuple[list[str], Truth]:
    """Sentences with an address each that a computer can have, half of them long."""
    texts, truth = [], []
    while len(texts) < n:
        network = ipaddress.ip_network(str(chance.choice(NETWORKS[version])))
        below = int.from_bytes(chance.bytes(network.max_prefixlen // 8)) % network.num_addresses
        address = network[below]
        if address.is_reserved or address.is_loopback or address.is_multicast:
            continue
        shown = address.exploded if chance.random() < 0.5 else address.compressed
        begin = "The request came from "
        texts.append(f"{begin}{shown} at noon.")
        truth.append({(len(begin), len(begin) + len(shown))})
    return texts, truth


def lookalikes(forms: Sequence[str], n: int, chance: np.random.Generator) -> list[str]:
    """Sentences with numbers that only look like a secret."""
    texts = []
    for place in range(n):
        a, b = chance.integers(100, 1000), chance.integers(1000, 10**4)
        day = datetime.date(1950, 1, 1) + datetime.timedelta(days=int(chance.integers(36500)))
        form = forms[place % len(forms)]
        texts.append(f"See {form.format(*chance.integers(0, 20, 4), a=a, b=b, day=day)} for more.")
    return texts


def headers() -> Iterator[tuple[str, str]]:
    """Some C++ files that come with PyTorch."""
    (folder,) = find_spec("torch").submodule_search_locations
    for path in sorted(Path(folder, "include").rglob("*.h"))[::6]:
        yield path.name, path.read_text(encoding="utf-8", errors="ignore")


def of_countries(form: int, find: Find) -> float:
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


def false_alarms(texts: Sequence[str], find: Find, *kinds: str) -> float:
    """What is taken for a secret of some kinds in 1,000 passages, where none is."""
    found = [one for of_text in find(texts) for one in of_text if one.kind in kinds]
    return 1000 * len(found) / len(texts)


def passages(sources: Iterator[tuple[str, str]], most: int) -> list[str]:
    texts = (
        text[place : place + LETTERS]
        for _, text in sources
        for place in range(0, min(len(text), 3000), LETTERS)
    )
    return [*islice(texts, most)]


def rows(tiny: bool = False) -> Iterator[Row]:
    """Precision and recall where the truth is known, and false alarms in numbers of other kinds."""
    n = 20 if tiny else 2000
    chance = np.random.default_rng(0)
    texts, truth = people(n)
    private.secrets(texts[:1])  # loads the recognisers
    both = private.secrets, Known().secrets
    begin = time.perf_counter()
    private.secrets(texts)
    seconds = time.perf_counter() - begin
    yield shown(f"{n:,} records, each", 1000 * seconds / n, float("nan"), "ms", float("nan"))
    for kind, places in truth.items():
        ours, theirs = (rates(texts, places, one, kind) for one in both)
        for name, here, there in zip(("precision", "recall"), ours, theirs, strict=True):
            title = f"invented people, {kind}: {name}"
            yield at_least(title, here, there, "share", 0.99, ratio=ratio(here, there))
    for form in AMERICAN:
        some = n // 4
        given = rewritten(texts[:some], truth["phone"][:some], form, partial(american, chance))
        ours, theirs = (rates(*given, one, "phone")[1] for one in both)
        title = f"American numbers, {form.format(212, 555, '0123')}: recall"
        yield shown(title, ours, theirs, "share", ratio(ours, theirs))
    for form in INVENTED:
        given = rewritten(texts[:some], truth["phone"][:some], form, partial(invented, chance))
        ours, theirs = (rates(*given, one, "phone") for one in both)
        for name, here, there in zip(("precision", "recall"), ours, theirs, strict=True):
            title = f"any area code, {form.format(569, 283, 5600)}: {name}"
            yield at_least(title, here, there, "share", 0.99, ratio=ratio(here, there))
    for name, form in (("international", FORMS.INTERNATIONAL), ("national", FORMS.NATIONAL)):
        ours, theirs = (of_countries(form, one) for one in both)
        title = f"numbers of all countries, {name}: recall"
        yield shown(title, ours, theirs, "share", ratio(ours, theirs))
    for version in NETWORKS:
        given = addresses(version, n // 4, chance)
        ours, theirs = (rates(*given, one, "ip")[1] for one in both)
        yield at_least(
            f"{version} addresses: recall", ours, theirs, "share", 0.99, ratio=ratio(ours, theirs)
        )
    for kind, forms in (("ip", FALSE_IP), ("phone", FALSE_PHONE)):
        for form in forms:
            given = lookalikes([form], n // 4, chance)
            ours, theirs = (false_alarms(given, one, kind) for one in both)
            yield shown(f"{form}: taken for {kind}", ours, theirs, "per 1,000", float("nan"))
    sources = {"dates": patterns(), "code": modules(), "licences": licences(), "C++": headers()}
    for name, source in sources.items():
        given = passages(source, n)
        for what, kinds in (("numbers", ("phone", "card", "iban", "ssn")), ("ip", ("ip",))):
            ours, theirs = (false_alarms(given, one, *kinds) for one in both)
            title = f"{name}, {len(given):,} passages: {what}"
            yield shown(title, ours, theirs, "per 1,000", float("nan"))


def ratio(ours: float, theirs: float) -> float:
    return ours / theirs if theirs else float("nan")


if __name__ == "__main__":
    main(rows)

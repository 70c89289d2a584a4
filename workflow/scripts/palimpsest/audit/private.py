"""Private information in texts: what has a form by which it is known, such as an e-mail address.

The recognisers are those of Presidio, on a blank pipeline of spaCy: no model is needed, and nothing
is fetched. What has no form of its own is not found: names, postal addresses, dates of birth.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from palimpsest.arguments import TEXT, Listed, Made, Texts, takes
from palimpsest.audit.kinds import URL
from palimpsest.lazy_import import naming_extra

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine
    from spacy.tokens import Doc

PHONE = "PHONE_NUMBER"
KINDS = {
    "EMAIL_ADDRESS": "email",
    PHONE: "phone",
    "CREDIT_CARD": "card",
    "IBAN_CODE": "iban",
    "US_SSN": "ssn",
    "IP_ADDRESS": "ip",
    "URL": URL,
}
LEAST_SCORE = 0.35  # Presidio's score of a number of nine digits is below, and above beside "SSN"
VALID = 1  # how strictly Presidio takes telephone numbers: they are valid in one of eight countries
WITH_SCHEME = 0.6  # score of a web address that begins with https:// or http://
NO_RANGE = r"(?<!\b(?:lines|pages|pgs?\.?|pp?\.?|ranges?|rows|columns|items|verses)\W{0,3})"
NO_VERSION = r"(?<!\b(?:versions?|ver|v|releases?|rel|revision|rev|build|firmware)\W{0,3})"
# What phonenumbers can take for a number of some country: a Unix time in seconds, and a date
NO_PHONE = re.compile(
    r"1\d{9}"
    r"|(?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])\.[12]\d{3}"
    r"|[12]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
)

# Telephone numbers by their shape, since phonenumbers takes a number for none whose area code is
# missing or not assigned. A word beside it, as `line`, can be one of telephone.
DASH = r"[.\-/\u2010-\u2013]"
GAP = rf"(?:[ \xa0]?{DASH}[ \xa0]?|[ \xa0])"
COUNTRY = rf"(?:\+?1{GAP}?)?"
EXTENSION = r"(?:[ ]?(?:x|ext\.?)[ ]?\d{1,5})?"
NO_DIGIT = r"(?<![\d+])(?<!\d[.\-])"
NO_DOTTED_VERSION = rf"(?:{NO_VERSION}|(?!\d+\.\d+\.\d))"
BRACKETED, PARTED = rf"\(\d{{3}}\){GAP}?\d{{3}}{GAP}?\d{{4}}", rf"\d{{3}}{GAP}\d{{3}}{GAP}\d{{4}}"
PHONE_SHAPES = {
    "local": NO_RANGE + r"(?<![\w.+-])\d{3}-\d{4}(?![\w-])",
    "in three parts": NO_DIGIT
    + NO_DOTTED_VERSION
    + rf"{COUNTRY}(?:{BRACKETED}|{PARTED}){EXTENSION}(?!\d|[.\-]\d)",
    "ten digits": rf"(?<!\w){NO_DIGIT}{COUNTRY}[2-9]\d\d[2-9]\d{{6}}{EXTENSION}(?!\w|[.\-]\d)",
    # A line that was added to a file can begin with + and a date
    "international": r"(?<![\w+])\+(?!\d{4}-\d\d-\d\d|\d\d\.\d\d\.\d{4})[1-9]"
    + rf"(?:(?:{DASH}|[ \xa0()]){{0,3}}\d){{7,14}}(?!\d)",
}


class Secret(NamedTuple):
    """Letters of a text from `begin` on and before `end`, which are private information."""

    kind: str
    begin: int
    end: int

    def within(self, begin: int, end: int) -> Secret:
        """The part of the secret that is in some letters of the text; it may have no letter."""
        first = min(max(self.begin, begin), end)
        return Secret(self.kind, first, max(first, min(self.end, end)))

    @property
    def n_letters(self) -> int:
        return self.end - self.begin


@takes(texts=Texts())
def secrets(texts: Sequence[str]) -> list[list[Secret]]:
    """The private information in each text, from left to right; no two overlap."""
    return [_apart(_recognised(text)) for text in texts]


@takes(text=TEXT, found=Listed(Made(Secret, "audit.secrets(texts)")))
def masked(text: str, found: Sequence[Secret], begin: int = 0, end: int | None = None) -> str:
    """Some letters of a text, with the kind and the length of each secret instead of it.

    For example, `call <PHONE 8>` for `call 758-8966`. Of a secret that is only partly in these
    letters, the length is that of this part.
    """
    end = len(text) if end is None else end
    parts, place = [], begin
    for secret in (one.within(begin, end) for one in found):
        if secret.n_letters:
            label = f"<{secret.kind.upper()} {secret.n_letters}>"
            parts += [text[place : secret.begin], label]
            place = secret.end
    return "".join([*parts, text[place:end]])


def _recognised(text: str) -> Iterator[tuple[float, Secret]]:
    for one in analyzer().analyze(text, "en"):
        said = text[one.start : one.end]
        if one.entity_type != PHONE or not (_is_ipv4(said) or NO_PHONE.fullmatch(said)):
            yield one.score, Secret(KINDS[one.entity_type], one.start, one.end)


def _is_ipv4(text: str) -> bool:
    """Whether it is four numbers as of an address: if it is none, it is no telephone number."""
    try:
        return bool(ipaddress.IPv4Address(text))
    except ValueError:
        return False


def _apart(found: Iterator[tuple[float, Secret]]) -> list[Secret]:
    """Of secrets that overlap, the one with the highest score, and of these the longest."""
    kept: list[Secret] = []
    for _, secret in sorted(found, key=lambda one: (-one[0], -one[1].n_letters, one[1])):
        if not any(secret.within(other.begin, other.end).n_letters for other in kept):
            kept.append(secret)
    return sorted(kept, key=lambda one: one.begin)


@cache
def analyzer() -> AnalyzerEngine:
    """Presidio, which otherwise would fetch a language model and a list of domains."""
    with naming_extra():
        import spacy
        from presidio_analyzer import AnalyzerEngine, Pattern, PatternRecognizer, RecognizerRegistry
        from presidio_analyzer import predefined_recognizers as known
        from presidio_analyzer.nlp_engine import SpacyNlpEngine
        from spacy.language import Language

    class Address(known.EmailRecognizer):
        """An e-mail address, at a host of any name: the list of domains is not asked."""

        def validate_result(self, pattern_text: str) -> None:
            return None

    class Computer(known.IpRecognizer):
        """An IP address that a computer can have towards others.

        Blocks that are reserved hold what only looks like one: `a::b`, `x[::2]`, 255.255.255.0.
        """

        def invalidate_result(self, pattern_text: str) -> bool:
            if super().invalidate_result(pattern_text):
                return True
            address = ipaddress.ip_interface(pattern_text).ip
            if address.version == 6 and "." in pattern_text:  # written with an IPv4 address
                return False
            return address.is_reserved or address.is_loopback or address.is_unspecified

    @Language.component("lower_case")
    def lower_case(doc: Doc) -> Doc:
        """Presidio looks for words beside a number among lemmas, which a blank pipeline lacks."""
        for token in doc:
            token.lemma_ = token.lower_
        return doc

    words = SpacyNlpEngine()
    words.nlp = {"en": spacy.blank("en")}
    words.nlp["en"].add_pipe("lower_case")
    # As sure as Presidio is of a valid number, so that of two that overlap the longest is masked
    shapes = [
        Pattern(name, shape, known.PhoneRecognizer.SCORE) for name, shape in PHONE_SHAPES.items()
    ]
    addresses = [
        Pattern(one.name, NO_VERSION + one.regex, one.score) for one in known.IpRecognizer.PATTERNS
    ]
    with_scheme = [one for one in known.UrlRecognizer.PATTERNS if one.score >= WITH_SCHEME]
    recognizers = [
        Address(),
        known.PhoneRecognizer(leniency=VALID),
        PatternRecognizer(PHONE, patterns=shapes, context=known.PhoneRecognizer.CONTEXT),
        known.CreditCardRecognizer(),
        known.IbanRecognizer(),
        known.UsSsnRecognizer(),
        Computer(patterns=addresses),
        known.UrlRecognizer(patterns=with_scheme),
    ]
    return AnalyzerEngine(
        RecognizerRegistry(recognizers),
        words,
        supported_languages=["en"],
        default_score_threshold=LEAST_SCORE,
    )

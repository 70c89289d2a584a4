"""Values in users' tables: what is a name, a number or a time, whatever type holds it.

Only the standard library is imported, because the table of models is read before Snakemake builds
its graph of jobs. Values of NumPy and pandas are known by what they have in common with Python's.
"""

import math
import numbers
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import NamedTuple

# Python's own float() also takes 1_000, and digits of other scripts.
NUMERAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INFINITY = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
ISO_DATE = re.compile(
    r"(?P<whole>[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?)"
    r"(\.(?P<fraction>[0-9]{1,9}))?(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?"
)
NUMBER, LOCAL, ZONED = "a number", "a date without a time zone", "a date with a time zone"
MICROSECOND = timedelta(microseconds=1)
MICROSECONDS_OF_DAY = timedelta(days=1) // MICROSECOND
EPOCH = datetime(1970, 1, 1)
TOO_FINE = "is finer than a microsecond"
OUTSIDE = "is a date outside of the years 1 to 9999"
HALF = "is a text with half a character (a lone surrogate), which no file in UTF-8 can hold"
MOST_SHOWN = 60  # characters
YES, NO = {"true", "yes", "1"}, {"false", "no", "0"}


class Moment(NamedTuple):
    """A time: a number, or a date as microseconds since 1970 (UTC if the date has a zone)."""

    kind: str
    at: float


class WrittenNumber(float):
    """A number that is written as its file has it, such as 1.10 or 1e5."""

    def __new__(cls, text: str) -> "WrittenNumber":
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text


def number_in(value: object) -> float:
    """The number in a value, which may be infinite. Raises `ValueError` if there is none.

    A text is a number if it is written as one, with a decimal point. A number of NumPy's type
    float32 is the shortest decimal that names it, so that 0.1 is 0.1 in every type.
    """
    if isinstance(value, str):
        text = value.strip(" \t")
        if INFINITY.fullmatch(text):
            return float(text)
        if not NUMERAL.fullmatch(text) or math.isinf(number := float(text)):
            raise ValueError
        return number
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        raise ValueError
    is_short = isinstance(value, numbers.Real) and getattr(value, "itemsize", 8) < 8
    try:
        number = float(str(value)) if is_short else float(value)
    except OverflowError:
        raise ValueError from None
    if math.isnan(number):
        raise ValueError
    return number


def moment_in(value: object) -> Moment:
    """The time in a value: a number, a date, or a text that is written as one of them, or as NaN.

    Raises `ValueError`, with the reason if the value is a date.
    """
    if getattr(getattr(value, "dtype", None), "kind", "") == "M":
        value = _of_numpy(value)
    if isinstance(value, str) and (found := ISO_DATE.fullmatch(value.strip(" \t"))):
        return _of_date(_read(found))
    if isinstance(value, date):
        if getattr(value, "nanosecond", 0):
            raise ValueError(TOO_FINE)
        return _of_date(value)
    if isinstance(value, str) and value.strip(" \t").lower() == "nan":
        return Moment(NUMBER, math.nan)  # NaN: a number's way to write that there is none
    number = number_in(value)
    if _whole(value) not in (None, number):
        raise ValueError("is too large to be told from its neighbours: count in larger units")
    return Moment(NUMBER, number)


def _of_numpy(value: object) -> datetime:
    """The date in NumPy's datetime64."""
    whole = value.astype("datetime64[us]")
    found = whole.item()
    # NumPy turns a date that is out of range into another date or into a whole number.
    is_same_day = whole.astype("datetime64[D]") == value.astype("datetime64[D]")
    if not is_same_day or not isinstance(found, datetime):
        raise ValueError(OUTSIDE)
    if whole != value:
        raise ValueError(TOO_FINE)
    return found


def _whole(value: object) -> int | None:
    """The exact number in a value written as a whole number; None for other values."""
    if isinstance(value, numbers.Integral):
        return int(value)
    text = value.strip(" \t+-") if isinstance(value, str) else ""
    return (-1 if "-" in value else 1) * int(text) if text.isdigit() else None


def _read(found: re.Match) -> datetime:
    fraction = (found["fraction"] or "").ljust(6, "0")
    if fraction[6:].strip("0"):
        raise ValueError(TOO_FINE)
    moment = datetime.fromisoformat(found["whole"] + (found["zone"] or ""))
    return moment.replace(microsecond=int(fraction[:6]))


def _of_date(value: date) -> Moment:
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    value = value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
    if value.tzinfo is None:
        return Moment(LOCAL, (value - EPOCH) // MICROSECOND)
    return Moment(ZONED, (value - EPOCH.replace(tzinfo=UTC)) // MICROSECOND)


def name_in(value: object) -> str:
    """A name as written. Raises `ValueError` for a value that is neither a text nor a number.

    A number stored as a number is written in the shortest form that identifies it. A number of a
    JSON file is written as in the file. JSON can write half of a character; a text with one is
    refused, with the reason.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(HALF) from None
        return str(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        raise ValueError
    return str(value)


def texts_in(value: object) -> tuple[str, ...]:
    """The texts in a list of texts, or in a text. Raises `ValueError` for any other value."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ValueError
    if not all(text.strip() for text in texts):
        raise ValueError("is or has a text without words")
    return tuple(map(name_in, texts))


def truth_in(value: object) -> bool:
    """Whether a value says true or false. Raises `ValueError` for any other value.

    True are true, yes and 1; false are false, no and 0. Words may have capitals.
    """
    word = str(value).strip().casefold().removesuffix(".0")
    if word in YES:
        return True
    if word in NO:
        return False
    raise ValueError


def written(value: object) -> str:
    """A value for messages: a text in quotes, any other value as a file would have it.

    At most 60 characters.
    """
    if isinstance(value, str):
        said = repr(str(value))
    elif isinstance(value, float) and not isinstance(value, WrittenNumber):
        said = written_number(float(value))
    elif isinstance(value, datetime):
        said = value.isoformat(sep=" ")
    else:
        said = str(value)
    return said if len(said) <= MOST_SHOWN else f"{said[: MOST_SHOWN - 3]}..."


def written_number(number: float) -> str:
    return f"{number:.0f}" if number.is_integer() and abs(number) < 2**53 else str(float(number))


def written_moment(kind: str, at: float) -> str:
    """A number, or a date from its days since 1970."""
    if kind == NUMBER:
        return written_number(at)
    moment = EPOCH + round(at * MICROSECONDS_OF_DAY) * MICROSECOND
    said = moment.date().isoformat() if moment.time() == time() else moment.isoformat(sep=" ")
    return f"{said} UTC" if kind == ZONED else said

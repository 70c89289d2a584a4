"""Private information: what is found, what is not, what is shown; nothing is fetched."""

import socket

import phonenumbers
import pytest

from helpers.experiments import ROOT
from palimpsest.audit.kinds import FINDINGS, KINDS, RECITED
from palimpsest.audit.private import Secret, masked, secrets
from palimpsest.languages import Grammar, field_losses


@pytest.fixture(autouse=True)
def nothing_is_fetched(monkeypatch):
    """Every attempt to connect fails the test."""

    def refuse(*_):
        raise AssertionError("a recogniser wants the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Write to ann.ek@post.example.", "Write to <EMAIL 19>."),
        ("call 758-8966, or (212) 555-0123", "call <PHONE 8>, or <PHONE 14>"),
        ("call +44 20 7946 0958", "call <PHONE 16>"),
        ("call 569-283-5600", "call <PHONE 12>"),  # no area code is 569
        ("569.283.5600, 5692835600. 569 283 5600", "<PHONE 12>, <PHONE 10>. <PHONE 12>"),
        ("+1 569-283-5600 or (569) 283-5600", "<PHONE 15> or <PHONE 14>"),
        ("+15692835600, 1-569-283-5600 x12.", "<PHONE 12>, <PHONE 18>."),
        ("press release: 569-283-5600", "press release: <PHONE 12>"),
        ("tel:+999 12 (34) 56-78, +99912345678", "tel:<PHONE 18>, <PHONE 12>"),
        ("+1234567, +1234567890123456", "+1234567, +1234567890123456"),  # 7 and 16 digits
        ("at 1714521600", "at 1714521600"),
        ("a5692835600, 5692835600.25", "a5692835600, 5692835600.25"),
        ("2024-05-01, 01.05.2024, +2024-05-01", "2024-05-01, 01.05.2024, +2024-05-01"),
        ("born 04.02.1990, 1212-05-01", "born 04.02.1990, 1212-05-01"),
        ("version 100.200.3000", "version 100.200.3000"),
        ("card 4111 1111 1111 1111", "card <CARD 19>"),
        ("card 4111 1111 1111 1112", "card 4111 1111 1111 1112"),  # its check digit is wrong
        ("to DE89370400440532013000", "to <IBAN 22>"),
        ("SSN 219-09-9999", "SSN <SSN 11>"),
        ("his SSN is 219099999", "his SSN is <SSN 9>"),
        ("a code of 219099999", "a code of 219099999"),
        ("from 192.168.1.77", "from <IP 12>"),
        ("see https://www.example.org/a?b=c now", "see <URL 29> now"),
        ("'2014-07-22', '2014-07-23', 3.14159", "'2014-07-22', '2014-07-23', 3.14159"),
        ("from 2001:db8::1, fe80::1%eth0", "from <IP 11>, <IP 12>"),
        ("or ::ffff:8.8.4.4 and 10.1.2.3/16", "or <IP 14> and <IP 11>"),
        ("a::b, x[::2], y[1::-1], c10::d", "a::b, x[::2], y[1::-1], c10::d"),
        ("::1 or 127.0.0.1, mask 255.255.255.0", "::1 or 127.0.0.1, mask 255.255.255.0"),
        ("release 4.2.0.1, Version: 10.2.0.1", "release 4.2.0.1, Version: 10.2.0.1"),
        ("lines 100-2000, pp. 123-4567", "lines 100-2000, pp. 123-4567"),
        ("her line 758-8966; pages: call 758-8966", "her line <PHONE 8>; pages: call <PHONE 8>"),
        ("Ann Ek lives in Oslo, 12 Main Street.", "Ann Ek lives in Oslo, 12 Main Street."),
        ("", ""),
    ],
)
def test_what_is_shown(text, shown):
    assert masked(text, *secrets([text])) == shown


def test_a_part_of_a_secret_is_hidden_as_well():
    text = "call 758-8966 now"
    (found,) = secrets([text])
    assert masked(text, found, 0, 9) + masked(text, found, 9) == "call <PHONE 4><PHONE 4> now"
    assert masked(text, found, 0, 5) == "call "
    assert masked(text, found, 13) == " now"


def test_secrets_do_not_overlap():
    """The host of an e-mail address is a part of it."""
    text = "mail bo@www.post.org or see http://post.org/1.2.3.4"
    (found,) = secrets([text])
    assert [one.kind for one in found] == ["email", "url"]


def test_what_is_within():
    assert Secret("phone", 2, 8).within(4, 20) == Secret("phone", 4, 8)
    assert Secret("phone", 2, 8).within(8, 20).n_letters == 0
    assert Secret("phone", 2, 8).within(0, 2).n_letters == 0


def test_precision_and_recall_on_records_whose_truth_is_known():
    """Every e-mail address and telephone number of invented people, and nothing else."""
    people = Grammar.from_file(ROOT / "config/languages/people.pcfg")
    texts = ["".join(one) for one in people.sample(100, seed=1)]
    fields = field_losses(people, texts)
    truth = fields[fields["field"].isin(["PHONE", "EMAIL"])].sort_values(["string", "begin"])
    expected = [(row.string, row.field.lower(), row.begin, row.end) for row in truth.itertuples()]
    found = [(place, *one) for place, of_text in enumerate(secrets(texts)) for one in of_text]
    assert found == expected


@pytest.mark.parametrize("form", ["{}-{}-{}", "{}.{}.{}", "{}{}{}", "+1 {}-{}-{}", "({}) {}-{}"])
def test_no_digit_of_a_telephone_number_is_shown_whatever_its_area_code(form):
    texts = [f"call {form.format(area, 1183 - area, 5600)} now" for area in range(200, 984)]
    shown = {masked(*one) for one in zip(texts, secrets(texts), strict=True)}
    assert shown == {f"call <PHONE {len(form.format(569, 283, 5600))}> now"}


def test_texts_as_they_are_stand_in_folders_of_their_own():
    """The page says which folders are not to be handed on; two tables have masked texts."""
    texts = {"answer", "predicted", "generated", "prompt", "continuation", "span"}
    shown = {kind for kind in KINDS if texts & {*kind.names} and "/raw/" not in kind.path}
    assert shown == {FINDINGS, RECITED}


def test_telephone_numbers_of_other_countries():
    """All in international form; in national form, those of few countries."""
    share = {}
    for form in (
        phonenumbers.PhoneNumberFormat.INTERNATIONAL,
        phonenumbers.PhoneNumberFormat.NATIONAL,
    ):
        numbers = [
            phonenumbers.format_number(phonenumbers.example_number(region), form)
            for region in sorted(phonenumbers.SUPPORTED_REGIONS)
        ]
        found = secrets([f"Ask for her at {number} today." for number in numbers])
        whole = [
            any(one.kind == "phone" and one.n_letters == len(number) for one in of_text)
            for number, of_text in zip(numbers, found, strict=True)
        ]
        share[form] = sum(whole) / len(whole)
    assert share[phonenumbers.PhoneNumberFormat.INTERNATIONAL] > 0.95
    assert 0.4 < share[phonenumbers.PhoneNumberFormat.NATIONAL] < 0.7

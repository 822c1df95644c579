"""Checkable values, sentences, words, codes and names found in text."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.atoms import NUMBERS, Atom, atoms, codes, negated, resolve_date, same
from ingest.blocks import sentences, written_out
from ingest.words import fold, mentions, stems, storable, words


def found(text: str, day_first: bool | None = None) -> list[str]:
    return [f"{atom.kind} {atom.value}" for atom in atoms(text, day_first=day_first)]


def one(text: str) -> Atom:
    (atom,) = atoms(text)
    return atom


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-09-13", ["date 2026-09-13"]),
        ("2026-09-13T10:30:00", ["date 2026-09-13", "time 10:30"]),
        ("14 August 2026", ["date 2026-08-14"]),
        ("14th of August", ["date --08-14"]),
        ("14 Aug", ["date --08-14"]),
        ("14-Aug-2026", ["date 2026-08-14"]),
        ("August 14, 2026", ["date 2026-08-14"]),
        ("Aug. 14th", ["date --08-14"]),
        ("14 de agosto de 2026", ["date 2026-08-14"]),
        ("1 de septiembre", ["date --09-01"]),
        ("from 1 May to 5 June", ["date --05-01", "date --06-05"]),
        ("on May 10", ["date --05-10"]),
        ("asked on 10 may", ["date --05-10"]),
        ("ticket 4812, 30 days", ["number 4812", "duration 30 day"]),
        ("Version 2.10 may be refunded", ["version v2.10"]),
        ("Version 10 May be refunded", ["number 10"]),
        ("at most 10 may apply", ["number 10"]),
        ("you may 10 times", ["number 10"]),
        ("31 February", ["number 31"]),
        ("02/09/2025", ["id 02/09/2025"]),
        ("31/12/2025", ["date 2025-12-31"]),
        ("09:30 and 4:05 pm and 9am", ["time 09:30", "time 16:05", "time 09:00"]),
        ("30-day window", ["duration 30 day"]),
        ("two weeks", ["duration 14 day"]),
        ("a year", ["duration 1 year"]),
        ("one year", ["duration 1 year"]),
        ("48h", ["duration 48 hour"]),
        ("90 min", ["duration 90 minute"]),
        ("1.5 hours", ["duration 90 minute"]),
        ("24 months", ["duration 24 month"]),
        ("8 business hours", ["duration 8 business_hour"]),
        ("eight-hour", ["duration 8 hour"]),
        ("10 working days", ["duration 10 business_day"]),
        ("fourteen (14) days", ["duration 14 day"]),
        ("twenty-four months", ["duration 24 month"]),
        ("treinta y cinco días hábiles", ["duration 35 business_day"]),
        ("once días", ["duration 11 day"]),
        ("once a year", []),
        ("5 exports a day", ["number 5"]),
        ("4 to 7 business days", ["duration 4 business_day", "duration 7 business_day"]),
        ("10–15 days", ["duration 10 day", "duration 15 day"]),
        ("30 and 7 days before", ["duration 30 day", "duration 7 day"]),
        ("1,000 days", ["duration 1000 day"]),
        ("3D view", ["id 3d"]),
        ("€29", ["money EUR 29.00"]),
        ("29 EUR", ["money EUR 29.00"]),
        ("29,90 €", ["money EUR 29.90"]),
        ("$1,200.50", ["money USD 1200.50"]),
        ("1.200,50 €", ["money EUR 1200.50"]),
        ("5%", ["percent 5%"]),
        ("99,5 por ciento", ["percent 99.5%"]),
        ("TCK-4812", ["id tck-4812"]),
        ("#4812", ["id 4812"]),
        ("ERR_SSO-4032", ["id err_sso-4032"]),
        ("MAX_TOKENS", ["id max_tokens"]),
        ("max_tokens", []),
        ("0x80070005", ["id 0x80070005"]),
        ("v2.3.1", ["version v2.3.1"]),
        ("2.3.1", ["version v2.3.1"]),
        ("a.b@example.com", ["email a.b@example.com"]),
        ("see https://help.example.com/a?b=1.", ["url https://help.example.com/a?b=1"]),
        ("1,000 users", ["number 1000"]),
        ("1.000 usuarios", ["number 1000"]),
        ("2.5 times", ["number 2.5"]),
        ("twenty-one users", ["number 21"]),
        ("which one is it", []),
        ("as said [1][2, 3].", []),
        ("[1](https://a.example)", ["number 1", "url https://a.example"]),
        ("1. Sign in\n2. Wait 3 days", ["duration 3 day"]),
        ("| 10 | 20 days |", ["number 10", "duration 20 day"]),
        ("24/7", ["id 24/7"]),
    ],
)
def test_atoms(text: str, wanted: list[str]) -> None:
    assert found(text) == wanted


def test_numeric_dates_are_read_as_told() -> None:
    assert found("02/09/2025", day_first=True) == ["date 2025-09-02"]
    assert found("02/09/2025", day_first=False) == ["date 2025-02-09"]
    assert found("31/12/2025", day_first=False) == ["date 2025-12-31"]
    assert found("31.02.2025", day_first=True) == ["id 31.02.2025"]


@given(st.text(alphabet="0123456789 -/.:,€#|[]()avmdhERRday\nñé", max_size=40))
def test_atoms_stand_where_they_say_and_do_not_overlap(text: str) -> None:
    end = 0
    for atom in atoms(text):
        assert atom.start >= end
        assert text[atom.start : atom.end] == atom.text
        end = atom.end


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_every_date_is_read_in_every_spelling(day: date) -> None:
    value = f"date {day.isoformat()}"
    month = f"{day:%B}"
    assert found(day.isoformat()) == [value]
    assert found(f"{day.day} {month} {day.year}") == [value]
    assert found(f"{month} {day.day}, {day.year}") == [value]
    assert found(f"{day.day:02}/{day.month:02}/{day.year}", day_first=True) == [value]
    assert found(f"{day.month:02}/{day.day:02}/{day.year}", day_first=False) == [value]


@given(st.sampled_from(sorted(NUMBERS)))
def test_every_spelled_number_counts_days(word: str) -> None:
    unit = "days" if word.isascii() and word not in ("once",) else "días"
    assert found(f"{word} {'dias' if word == 'once' else unit}") == [f"duration {NUMBERS[word]} day"]


def test_spelled_numbers_are_right() -> None:
    assert {word: NUMBERS[word] for word in ("ninety-nine", "forty two", "noventa y nueve", "veintiuno")} == {
        "ninety-nine": 99,
        "forty two": 42,
        "noventa y nueve": 99,
        "veintiuno": 21,
    }
    assert len([word for word in NUMBERS if " y " in word]) == 7 * 9


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ("14 days", "two weeks", True),
        ("a year", "12 months", True),
        ("30 days", "30 business days", False),
        ("30 days", "14 days", False),
        ("30", "30 days", False),
        ("13 September", "13 September 2026", True),
        ("13 September 2025", "13 September 2026", False),
        ("2026-09-13", "September 13, 2026", True),
        ("4812", "#4812", True),
        ("TCK-4812", "4812", True),
        ("TCK-4812", "#4812", True),
        ("TCK-4812", "INV-4812", False),
        ("TCK-4812", "4821", False),
        ("€29", "29.00 EUR", True),
        ("€29", "$29", False),
        ("v2.3.1", "2.3.1", True),
        ("1,000", "1000", True),
    ],
)
def test_same(a: str, b: str, wanted: bool) -> None:
    assert same(one(a), one(b)) is wanted
    assert same(one(b), one(a)) is wanted


@pytest.mark.parametrize(
    ("text", "reference", "wanted"),
    [
        ("14 August", date(2026, 9, 1), date(2026, 8, 14)),
        ("14 August", date(2026, 8, 14), date(2026, 8, 14)),
        ("14 August", date(2026, 8, 13), date(2025, 8, 14)),
        ("29 February", date(2026, 9, 1), date(2024, 2, 29)),
        ("29 February", date(1903, 9, 1), date(1896, 2, 29)),
        ("14 August 2027", date(2026, 9, 1), date(2027, 8, 14)),
        ("they asked on 2 September", date(2026, 9, 26), date(2026, 9, 2)),
        ("30 days", date(2026, 9, 1), None),
        ("no date", date(2026, 9, 1), None),
    ],
)
def test_a_date_without_a_year_is_the_latest_one(text: str, reference: date, wanted: date | None) -> None:
    assert resolve_date(text, reference) == wanted


@given(st.dates(date(1, 1, 1), date(9, 12, 31)))
def test_a_date_before_the_calendar_is_none(reference: date) -> None:
    day = resolve_date("29 February", reference)
    assert day is None or day <= reference


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("One. Two! Three? Four.", ["One.", "Two!", "Three?", "Four."]),
        ("See e.g. No. 4 of v2.3.1. It costs 2.5 EUR.", ["See e.g. No. 4 of v2.3.1.", "It costs 2.5 EUR."]),
        ("The answer is no. We go.", ["The answer is no.", "We go."]),
        ("Albarán Software S.L. Valencia.", ["Albarán Software S.L. Valencia."]),
        ("Dr. Vidal writes, p. ej. Madrid.", ["Dr. Vidal writes, p. ej. Madrid."]),
        ("Is it? yes it is.", ["Is it?", "yes it is."]),
        ("He said “Go.” Then he left.", ["He said “Go.”", "Then he left."]),
        ("¿Qué? ¡Sí! Vale.", ["¿Qué?", "¡Sí!", "Vale."]),
        ("A line\nthat goes on. Next.", ["A line that goes on.", "Next."]),
        ("# Title\nText.", ["# Title", "Text."]),
        ("- one\n- two\n  goes on\n1. three. Four.", ["one", "two goes on", "1. three.", "Four."]),
        ("| a | b |\n|---|---|\n| x | 30 days |", ["| a | b |", "| x | 30 days |"]),
        ("a | b\n--- | ---\nx | y\n\nEnd.", ["a | b", "x | y", "End."]),
        ("> Quoted. Twice.", ["Quoted.", "Twice."]),
        ("```\na. B\nc\n```\nAfter.", ["a. B", "c", "After."]),
        ("", []),
    ],
)
def test_sentences(text: str, wanted: list[str]) -> None:
    assert list(sentences(text)) == wanted


@given(st.text(alphabet="ab. A|-#>`\n*1!?", max_size=60))
def test_sentences_lose_no_word(text: str) -> None:
    outside = [word for word in words(text) if not word.isdigit()]
    kept = [word for line in sentences(text) for word in words(line) if not word.isdigit()]
    assert kept == outside


def test_rows_are_written_out() -> None:
    text = "Before\n\n| Plan | **Window** |\n|---|---|\n| Team | 30 days |\n|  | 45 \\| 60 |\n\nAfter"
    assert written_out(text) == "Before\n\n- Plan: Team; Window: 30 days\n- Window: 45 | 60\n\nAfter"


def test_words_are_folded() -> None:
    assert words("Albarán's «Reembolsos» don't CAFE\u0301") == ("albaran", "reembolsos", "don", "cafe")


@given(st.text(max_size=30))
def test_folding_keeps_every_place(text: str) -> None:
    assert len(fold(text)) == len(text)


def test_folding_leaves_other_scripts_whole() -> None:
    assert fold("한국 Ñandú") == "한국 nandu"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("refunds", "refunded"),
        ("annual", "annually"),
        ("reembolso", "reembolsos"),
        ("cancelación", "cancelaciones"),
        ("factura", "facturas"),
        ("photo", "photos"),
        ("kept", "keep"),
        ("cancelacion", "cancelación"),
    ],
)
def test_stems_bring_forms_together(a: str, b: str) -> None:
    assert stems(a) == stems(b)
    assert len(stems(a)) == 1


def test_stop_words_of_both_languages_have_no_stem() -> None:
    assert stems("the of and what el de la cuando para") == ()
    assert stems("data") != stems("date")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("They are not refundable.", True),
        ("Gift cards are non-refundable.", True),
        ("You can't return it.", True),
        ("You can’t return it.", True),
        ("We cannot help.", True),
        ("It is no longer sold.", True),
        ("Never.", True),
        ("without VAT", True),
        ("No hay reembolso.", True),
        ("Nunca se devuelve.", True),
        ("Refunds are given.", False),
        ("no later than 8 hours", False),
        ("no more than 3 users", False),
        ("not only on Team", False),
        ("No. 4 of the list", False),
        ("Sin embargo, se reembolsa.", False),
        ("Se puede devolver.", False),
    ],
)
def test_negated(text: str, wanted: bool) -> None:
    assert negated(text) is wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("TCK-48213", {"tck-48213", "48213"}),
        ("(#4812)", {"4812"}),
        ("ERR_SSO-4032", {"err_sso-4032", "err_sso", "sso-4032", "4032"}),
        ("0x80070005", {"0x80070005"}),
        ("v2.3.1", {"v2.3.1", "2.3.1"}),
        ("ana@example.com", {"ana@example.com", "ana", "example.com"}),
        ("MAX_TOKENS", {"max_tokens"}),
        ("RMA BK26-0413", {"bk26-0413", "bk26", "0413"}),
        ("INV-2026-0034", {"inv-2026-0034", "2026-0034", "2026", "0034"}),
        ("read-only follow-up re-open", set()),
        ("30-day, 14 days, 2nd, 99.5%, €10000, 10:30", set()),
        ("on 2026-08-14 or 14 August 2026", set()),
        ("in 2026", set()),
        ("call 123", set()),
        ("https://a.example/x-1234", set()),
    ],
)
def test_codes(text: str, wanted: set[str]) -> None:
    assert set(codes(text)) == wanted


@pytest.mark.parametrize(
    ("text", "names", "wanted"),
    [
        ("the Team plan", ["Team", "Business"], ("Team",)),
        ("the TEAM plans", ["Team plan", "Team"], ("Team plan",)),
        ("billed annually", ["annual"], ("annual",)),
        ("annual billing", ["annually"], ("annually",)),
        ("a calendar month", ["monthly"], ()),
        ("teamwork", ["Team"], ()),
        ("Ortega Hardware's ticket", ["Ortega Hardware", "Ortega"], ("Ortega Hardware",)),
        ("facturación y España", ["espana", "Facturación"], ("Facturación", "espana")),
        ("Team Rocket and Team", ["Team", "Team Rocket"], ("Team Rocket", "Team")),
        ("categories", ["category"], ("category",)),
        ("anything", ["", "!"], ()),
    ],
)
def test_mentions(text: str, names: list[str], wanted: tuple[str, ...]) -> None:
    assert mentions(text, names) == wanted


def test_strict_mentions_are_written_as_the_name_is() -> None:
    assert mentions("my team has it", ["Team"], strict=True) == ()
    assert mentions("the Team plan", ["Team"], strict=True) == ("Team",)
    assert mentions("tell us", ["US"], strict=True) == ()
    assert mentions("Us too", ["US"], strict=True) == ()
    assert mentions("in the US", ["US"], strict=True) == ("US",)
    assert mentions("Annual plans", ["annual"], strict=True) == ("annual",)


def test_half_a_character_can_be_stored() -> None:
    text = storable("a \ud83d b \0 c 👍")
    assert text.encode() == "a \ufffd b \ufffd c 👍".encode()


@pytest.mark.parametrize(("word", "number"), NUMBERS.items())
def test_every_number_spelled_out_is_one_value(word: str, number: int) -> None:
    if word not in ("one", "uno", "once"):
        assert found(f"we saw {word} of them") == [f"number {number}"]
        assert found(f"within {word} months") == [f"duration {number} month"]


def test_digits_of_other_scripts_are_digits() -> None:
    assert found("within ٣٠ days") == ["duration 30 day"]
    assert found("٣٠ things") == ["number ٣٠"]

"""Ticket columns that look personal: by what they are called, by what they hold, and until settings say otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.config import CalendarSettings, TicketSettings
from ingest.tickets import TicketStore, guess
from tests.ingest.test_tickets import NOW

PEOPLE = ("Ana Ruiz", "Ben Low", "Jürgen Voß", "Zoë Quist")
NAMED = [
    "Full name", "Name", "First Name", "contactName", "Contact person", "Contact", "Associated Contact", "Name (address)", "Customer name", "Client contact",
    "E-mail", "Email address", "Phone", "Phone number", "Mobile", "Fax", "Skype", "Twitter handle", "WhatsApp", "Street", "Postcode", "Shipping address",
    "Caller", "caller_id", "Requested for (person)", "Reported by", "Created By", "Account manager", "Previous owner", "cc", "Date of birth", "IP",
    "Nombre completo", "Nombre", "Apellidos", "Persona de contacto", "Teléfono", "Móvil", "Correo electrónico", "Dirección", "Solicitante", "Creado por", "Nombre del cliente",
    "Ansprechpartner", "Vorname", "Nachname", "Telefon", "Handynummer", "Anschrift", "Straße", "Kontaktperson", "E-Mail-Adresse", "Erstellt von", "Name des Kunden",
    "Prénom", "Nom", "Adresse",
]  # fmt: skip
THINGS = [
    "Product name", "Plan name", "Ticket name", "Company", "Associated Company", "Plan", "Region", "Contact reason", "Contact channel", "User type", "Owner team",
    "Nombre del producto", "Tarifa", "Motivo de contacto", "Produkt", "Kontaktgrund art", "Tier", "Channel", "Version", "Language", "Number of users", "Paid by",
]  # fmt: skip
HELD = {
    "mail in a name": ("Ana Ruiz <ana@example.com>", "e-mail addresses"),
    "mail in brackets": ("Ana Ruiz (ana@example.com)", "e-mail addresses"),
    "telephone": ("call +34 600 123 456", "telephone numbers"),
    "telephone in brackets": ("(020) 7946 0018", "telephone numbers"),
    "handle": ("see @ana_ruiz", "handles"),
    "iban": ("ES91 2100 0418 4502 0005 1332", "bank accounts"),
    "ip": ("10.20.30.40", "IP addresses"),
}
PLAIN = [
    "Team",
    "v10.0.19045",
    "2026-08-14",
    "09:00-17:00",
    "+2",
    "3/4",
    "a @ b",
    "EU-West (2)",
    "10 %",
    "user/repo",
    "2026-08-14T09:00+02:00",
    "12.50 EUR",
]


def settings_of(header: str, values: tuple[str, ...], given: TicketSettings | None = None) -> TicketSettings:
    rows = [[str(90001 + at), "Acme GmbH", "Double charge", value] for at, value in enumerate(values)]
    return guess(["Ticket ID", "Customer", "Subject", header], rows, given)


@pytest.mark.parametrize("header", NAMED)
def test_a_column_that_is_called_like_a_person_or_an_address_is_personal(header: str) -> None:
    found = settings_of(header, PEOPLE)
    assert found.personal == (header,)
    assert header not in {*found.facets.values(), *found.events.values(), *found.columns.values()}


@pytest.mark.parametrize("header", THINGS)
def test_a_column_that_is_called_otherwise_stays_a_field(header: str) -> None:
    found = settings_of(header, ("alpha", "beta", "gamma", "beta"))
    assert found.personal == ()
    assert header in found.facets.values()


@pytest.mark.parametrize(("value", "_kind"), HELD.values(), ids=HELD)
@pytest.mark.parametrize("header", THINGS[:2])
def test_a_column_that_holds_what_reaches_somebody_is_personal(header: str, value: str, _kind: str) -> None:
    assert settings_of(header, (value, "none", "none", "none")).personal == (header,)


@pytest.mark.parametrize("value", PLAIN)
def test_what_only_looks_a_little_like_it_is_no_address(value: str) -> None:
    assert settings_of("Product", (value, "Team", "Pro", "Pro")).personal == ()


def test_one_slip_among_many_values_does_not_hide_a_field() -> None:
    assert settings_of("Product", ("Team",) * 40 + ("Team (ana@example.com)",)).facets == {
        "product": "Product"
    }


@pytest.mark.parametrize("section", ["facets", "columns"])
@pytest.mark.parametrize("header", ["Contact person", "Teléfono", "Ansprechpartner"])
def test_settings_that_name_the_column_opt_it_in(header: str, section: str) -> None:
    fixed = {"number": "Ticket ID", "subject": "Subject", "customer": "Customer"}
    given = (
        TicketSettings(facets={"person": header})
        if section == "facets"
        else TicketSettings(columns={**fixed, "assignee": header})
    )
    found = settings_of(header, PEOPLE, given)
    assert found.personal == ()
    assert header in getattr(found, section).values()


def make(tmp_path: Path, given: TicketSettings) -> TicketStore:
    return TicketStore(f"sqlite:///{tmp_path / 'tickets.db'}", given, CalendarSettings())


def test_the_report_and_doctor_name_the_columns_and_why(tmp_path: Path) -> None:
    file = tmp_path / "export.csv"
    file.write_text(
        "Ticket ID,Subject,Full name,Origin,Plan\n90001,Double charge,Ana Ruiz,ana@example.com,Team\n"
        "90002,Export fails,Ben Low,ben@example.com,Pro\n",
        "utf-8",
    )
    store = make(tmp_path, TicketSettings())
    said = store.import_csv(file, NOW).summary()
    (line,) = [line for line in store.describe() if line.startswith("personal: ")]
    assert line in said
    assert "Full name (called 'full name'), Origin (it holds addresses, numbers or handles of people)" in line
    assert "unless it is named under [tickets.facets]" in line
    assert store.warnings() == ()
    store.close()
    chosen = make(
        tmp_path, TicketSettings(facets={"origin": "Origin", "plan": "Plan"}, personal=("Full name",))
    )
    assert "personal: Full name" in chosen.describe()
    chosen.import_csv(file, NOW)
    (warning,) = chosen.warnings()
    assert "column 'Origin' looks personal (it holds e-mail addresses) and is shown" in warning
    chosen.close()


def test_what_an_earlier_version_took_for_a_facet_is_kept_out_at_once(tmp_path: Path) -> None:
    """The table still has the column, and what was learned still names it."""
    file = tmp_path / "export.csv"
    file.write_text("Ticket ID,Subject,Contact person\n90001,A,Ana Ruiz\n90002,B,Ben Low\n", "utf-8")
    chosen = make(tmp_path, TicketSettings(facets={"contact_person": "Contact person"}))
    chosen.import_csv(file, NOW)
    support = frozenset({"support"})
    shown = chosen.get("90001", support)
    assert shown is not None
    assert shown.facets == {"contact_person": "Ana Ruiz"}
    chosen.close()
    store = make(tmp_path, TicketSettings())
    for again in (False, True):
        if again:
            store.import_csv(file, NOW)
        ticket = store.get("90001", support)
        assert ticket is not None
        assert (ticket.facets, "contact_person" in store.values()) == ({}, False)
        assert store.settings.personal == ("Contact person",)
    store.close()

"""Guesses what a ticket file's columns mean, from their names and their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from ingest.config import TicketSettings
from ingest.tickets.numbers import Numbers
from ingest.tickets.personal import SLIP, by_name, by_values, name_words
from ingest.tickets.table import NOTHING, looks_dated

FIELDS = (
    "number",
    "customer",
    "status",
    "priority",
    "assignee",
    "subject",
    "body",
    "resolution",
    "opened_at",
    "updated_at",
)
"""The fixed fields that a file can bring."""
TIMES = frozenset({"opened_at", "updated_at"})


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        "number": (
            "ticket number, ticket no, ticket nr, ticket num, ticket id, ticket ref, ticket "
            "reference, ticket key, id ticket, case number, case no, case id, case ref, case "
            "reference, incident number, incident id, issue key, issue id, request id, rma number, "
            "numero de ticket, numero de caso, numero de incidencia, n ticket, no ticket, num ticket, numero ticket, numero caso, no caso, no incidencia, ticket, case, "
            "incident, rma, incidencia, caso, tique, key, number, numero, no, nr, num, n, ref, "
            "reference, referencia, display id, id"
        ),
        "customer": (
            "customer, customer name, customer company, client, client name, account, account name, "
            "company, company name, organization, organisation, organization name, organisation name, "
            "cliente, nombre del cliente, nombre cliente, empresa, cuenta, buyer, buyer name, shop, "
            "requester, requester name, reporter, contact name, contact, user, user name, usuario, "
            "solicitante"
        ),
        "status": "status, state, ticket state, current status, estado, situacion, stage",
        "priority": "priority, severity, urgency, prioridad, urgencia, gravedad, sev, prio",
        "assignee": (
            "assignee, assigned to, assigned, assigned agent, agent, agent name, owner, handler, "
            "handled by, technician, engineer, asignado, asignado a, agente, responsable, tecnico"
        ),
        "subject": (
            "subject, title, summary, headline, short description, topic, issue title, asunto, "
            "titulo, resumen, motivo"
        ),
        "body": (
            "body, description, message, details, detail, text, content, long description, full "
            "description, question, problem, comment, issue description, descripcion, mensaje, "
            "detalle, detalles, texto, contenido, consulta"
        ),
        "resolution": (
            "resolution, solution, outcome, answer, reply, response, resolution notes, close notes, "
            "closing note, fix, resolucion, solucion, respuesta, resultado"
        ),
        "opened_at": (
            "opened at, opened on, opened, open date, date opened, opening date, created at, created "
            "on, created, created date, creation date, date created, create time, created time, "
            "reported at, reported on, reported, submitted at, submitted on, submitted, received at, "
            "received on, received, ticket date, fecha de apertura, fecha apertura, fecha de "
            "creacion, fecha creacion, abierto el, abierto, creado el, creado, date, timestamp, "
            "datetime, time, fecha"
        ),
        "updated_at": (
            "updated at, updated on, updated, last updated, last update, last updated at, update "
            "date, modified at, modified on, modified, last modified, last modified at, last "
            "activity, last changed, changed, fecha de actualizacion, ultima actualizacion, "
            "actualizado el, actualizado, modificado"
        ),
    }
)
_ACTIONS = frozenset(
    _words(
        "request requested responded response resolved resolution closed asked answered replied claimed "
        "claim escalated  solicitado solicitud respondido respuesta resuelto resolucion cerrado cierre "
        "pedido reclamado"
    )
)
_NOUNS: Mapping[str, str] = MappingProxyType(
    dict(
        pair.split(":")
        for pair in _words(
            "charged:charge delivered:delivery renewed:renewal purchased:purchase bought:purchase "
            "requested:request asked:request responded:response replied:reply resolved:resolution "
            "closed:closing answered:answer claimed:claim shipped:shipment ordered:order paid:payment "
            "cancelled:cancellation canceled:cancellation activated:activation signed:signature "
            "expired:expiry expires:expiry started:start starts:start ended:end ends:end invoiced:invoice "
            "billed:billing installed:installation returned:return issued:issue upgraded:upgrade "
            "downgraded:downgrade refunded:refund subscribed:subscription escalated:escalation "
            "reopened:reopening registered:registration sold:sale received:receipt repaired:repair "
            "replaced:replacement inspected:inspection"
        )
    )
)
_DATE_WORDS = frozenset(
    _words("at on to date time datetime timestamp day of the when fecha de del la el hora")
)
_RUNS = re.compile(r"[A-Z]+|[0-9]+|.", re.DOTALL)
_PLAUSIBLE = re.compile(r"#?\s?[^\W_]+(?:[-_./:# ]{1,3}[^\W_]+)*")
"""What a ticket number may look like at all; `=cmd()` in a cell is none, and teaches no pattern."""
_ANY_CODE = r"(?=[A-Z_./-]*\d)[A-Z0-9]+(?:[-_./][A-Z0-9]+)*"
_MOST_VALUES = 200
_NEARLY_ALL = 0.8
_LONGEST_VALUE = 40


def guess(
    header: Sequence[str], rows: Sequence[Sequence[str]], settings: TicketSettings | None = None
) -> TicketSettings:
    """Fill in the empty sections of the settings from a file's header and rows.

    A column is given away once: to a section that is configured, to a fixed field by its name, to personal
    data by its name or by what it holds, to an event or action if it holds dates, to a facet if it holds few short
    texts. The rest stays out.
    """
    settings = settings or TicketSettings()
    columns = {name: [row[at] for row in rows if row[at]] for at, name in enumerate(header)}
    dated = {name for name, values in columns.items() if _holds_dates(name, values)}
    taken = {*settings.columns.values(), *settings.facets.values(), *settings.events.values()}
    taken |= {*settings.actions.values(), *settings.personal}
    update: dict[str, object] = {}
    if not settings.columns:
        update["columns"] = fields = _fields(columns, dated, taken, settings)
        taken |= set(fields.values())
    personal: list[str] = []
    events: dict[str, str] = {}
    actions: dict[str, str] = {}
    facets: dict[str, str] = {}
    for name, values in columns.items():
        if name in taken:
            continue
        facet = _few_short_texts(values, len(rows))
        if by_name(name) or by_values(values, SLIP if facet else _NEARLY_ALL):
            personal.append(name)
        elif name in dated:
            tokens = name_words(name)
            is_action = bool(_ACTIONS & set(tokens))
            (actions if is_action else events).setdefault(_event(tokens) or name, name)
        elif facet:
            facets.setdefault(_facet(name), name)
    for section, found in (("facets", facets), ("events", events), ("actions", actions)):
        if not getattr(settings, section):
            update[section] = found
    if not settings.personal:
        update["personal"] = tuple(personal)
    fields = {**settings.columns, **fields} if "columns" in update else dict(settings.columns)
    if not settings.model_fields_set & {"number_pattern", "prefixes"} and "number" in fields:
        update |= _number_format(columns.get(fields["number"], []), settings)
    return settings.model_copy(update=update)


def describe(settings: TicketSettings, chosen: Collection[str] = ()) -> tuple[str, ...]:
    """Say in a few lines what the columns are taken for, and why one is personal that nobody has `chosen`."""
    guessed = [column for column in settings.personal if column not in chosen]
    kept_out = [*(column for column in settings.personal if column in chosen), *map(_why_personal, guessed)]
    shown = "; none of them is shown to anybody, unless it is named under [tickets.facets]" if guessed else ""

    def pairs(section: Mapping[str, str]) -> str:
        return (
            ", ".join(name if name == column else f"{name} = {column}" for name, column in section.items())
            or "none"
        )

    spelled = " or ".join(f"{prefix}…" for prefix in settings.prefixes or ("#",))
    return (
        f"fields: {pairs(settings.columns)}",
        f"facets: {pairs(settings.facets)}",
        f"events: {pairs(settings.events)}",
        f"actions: {pairs(settings.actions)}",
        f"personal: {', '.join(kept_out) or 'none'}{shown}",
        f"numbers: {spelled}, where … is {settings.number_pattern}",
    )


def _why_personal(column: str) -> str:
    reason = by_name(column) or "it holds addresses, numbers or handles of people"
    return f"{column} ({reason})"


def _fields(
    columns: dict[str, list[str]], dated: set[str], taken: set[str], settings: TicketSettings
) -> dict[str, str]:
    """Give each fixed field the first free column that is called like it."""
    names: dict[str, str] = {}
    for column in columns:
        tokens = name_words(column)
        names.setdefault(" ".join(tokens), column)
        if len(tokens) > 1 and tokens[0] in ("ticket", "case", "incident", "issue"):
            names.setdefault(" ".join(tokens[1:]), column)
    found: dict[str, str] = {}
    for field, synonyms in _SYNONYMS.items():
        for synonym in re.split(r",\s*", synonyms):
            column = names.get(synonym, "")
            if not column or column in taken or column in found.values():
                continue
            if (column in dated) == (field in TIMES):
                found[field] = column
                break
    if "number" not in found:
        read = Numbers(settings.prefixes, settings.number_pattern)
        for column, values in columns.items():
            free = column not in taken and column not in found.values()
            if free and values and len(set(values)) == len(values) and all(map(read.canonical, values)):
                found["number"] = column
                break
    return {field: found[field] for field in FIELDS if field in found}


def _most(values: Sequence[str], test: Callable[[str], bool], share: float = _NEARLY_ALL) -> bool:
    return bool(values) and sum(map(test, values)) >= share * len(values)


def _holds_dates(name: str, values: Sequence[str]) -> bool:
    """Tell whether a column holds dates; one that is called like a date may hold a few other things."""
    tokens = name_words(name)
    called = bool(tokens) and (tokens[-1] in ("at", "on", "el") or bool({"date", "fecha"} & set(tokens)))
    written = [value for value in values if value.lower() not in NOTHING]
    if not written:
        return called
    return _most(written, looks_dated, 0.5 if called else _NEARLY_ALL)


def _event(tokens: Sequence[str]) -> str:
    kept = [token for token in tokens if token not in _DATE_WORDS]
    if len(kept) > 1 and kept[0] in ("ticket", "case"):
        kept = kept[1:]
    return " ".join([*kept[:-1], _NOUNS.get(kept[-1], kept[-1])]) if kept else ""


def _facet(name: str) -> str:
    tokens = name_words(name)
    if len(tokens) > 1 and tokens[0] in ("ticket", "case", "incident") and tokens[1] not in FIELDS:
        tokens = tokens[1:]
    plain = "_".join(tokens) or name
    return f"{plain}_facet" if plain in FIELDS else plain


def _few_short_texts(values: Sequence[str], rows: int) -> bool:
    distinct = {value.casefold() for value in values}
    most = min(max(12, rows * 0.2), _MOST_VALUES)
    return (
        rows >= 2
        and 0 < len(distinct) <= most
        and all(len(value) <= _LONGEST_VALUE and "\n" not in value for value in distinct)
        and not all(re.fullmatch(r"[-+€$£]?\s?[\d.,:\s]+%?", value) for value in distinct)
    )


def _number_format(values: Sequence[str], settings: TicketSettings) -> dict[str, object]:
    """Read prefix and pattern off the numbers themselves, when the settings' own do not fit most of them."""
    fits = Numbers(settings.prefixes, settings.number_pattern).canonical
    if not values or _most(values, lambda value: fits(value) is not None):
        return {}
    written = [value for value in values if _PLAUSIBLE.fullmatch(value)]
    values = [value for value in written if re.search(r"\d", value)] or written
    if not values:
        return {}
    prefixes = {
        match[0] if (match := re.match(r"[A-Za-z]+[-_ #:]*(?=[\dA-Z])", value)) else "" for value in values
    }
    prefix = prefixes.pop() if len(prefixes) == 1 else ""
    bare = [value.upper().removeprefix(prefix.upper()).removeprefix("#") for value in values]
    if all(value.isdecimal() and value.isascii() for value in bare):
        least, most = min(map(len, bare)), max(7, *map(len, bare))
        count = f"{least}" if least == most else f"{least},{most}"
        return {"prefixes": (prefix,) if prefix else settings.prefixes, "number_pattern": rf"\d{{{count}}}"}
    bare = [value.upper() for value in values] if not prefix.endswith((" ", "-", "_", "#", ":")) else bare
    kept = (prefix if prefix.endswith((" ", "-", "_", "#", ":")) else "",)
    skeletons: dict[str, list[list[str]]] = {}
    for value in bare:
        skeletons.setdefault(re.sub(r"[0-9]+", "9", re.sub("[A-Z]+", "A", value)), []).append(
            _RUNS.findall(value)
        )
    pattern = "|".join(map(_shape, skeletons.values())) if len(skeletons) <= 3 else _ANY_CODE
    return {"prefixes": kept, "number_pattern": pattern}


def _shape(values: Sequence[Sequence[str]]) -> str:
    """Write the pattern of numbers made alike: BK26-0413 and BK25-0018 are two letters, two digits, …"""
    parts = []
    for at, runs in enumerate(zip(*values, strict=True), start=1):
        lengths = {len(run) for run in runs}
        if not runs[0].isalnum():
            parts.append(re.escape(runs[0]).replace(r"\-", "-"))
            continue
        grows = at == len(values[0]) and len(lengths) > 1
        count = f"{min(lengths)},{max(7, *lengths)}" if grows else f"{min(lengths)},{max(lengths)}"
        parts.append(
            ("[A-Z]" if runs[0].isalpha() else r"\d") + f"{{{min(lengths) if len(lengths) == 1 else count}}}"
        )
    return "".join(parts)

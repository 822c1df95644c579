"""The words and phrases by which a question says which tickets it means, in English and Spanish."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ingest.words import stems


def bag(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


SPOKEN: Mapping[str, Sequence[str]] = {
    "open": ("abierto", "abierta"),
    "pending": ("pendiente", "on hold"),
    "closed": ("cerrado", "cerrada"),
    "resolved": ("resuelto", "resuelta", "solved"),
    "urgent": ("urgente",),
    "high": ("alta", "alto"),
    "normal": ("media",),
    "low": ("baja", "bajo"),
    "annual": ("anual", "yearly"),
    "monthly": ("mensual",),
}
"""Everyday words for values that many desks have; they count only where the tickets have the value."""
DONE: Mapping[str, Sequence[str]] = {
    "request": ("ask", "asked", "asking", "asks", "requested", "want", "wanted", "wants", "pidio", "pidieron", "pedido", "solicitud", "solicitado"),
    "response": ("reply", "replies", "replied", "answer", "answered", "responded", "respuesta", "contestado", "respondido"),
    "resolution": ("resolved", "resolve", "solved", "fixed", "close", "closed", "resuelto", "cerrado", "resolucion"),
    "charge": ("charged", "cobrado"),
    "delivery": ("delivered", "entregado"),
}  # fmt: skip
"""Everyday words for parts of an action's or event's name."""
FIELDS: Mapping[str, Sequence[str]] = {
    "customer": ("customer", "client", "account", "shop", "company", "buyer", "cliente", "comprador"),
    "assignee": ("assignee", "agent", "colleague", "handler", "owner", "person", "responsable", "agente"),
    "status": ("status", "state", "estado"),
    "priority": ("priority", "prio", "urgency", "severity", "prioridad"),
}
TRUE = bag("true yes y t 1 si on")
FALSE = bag("false no n f 0 off")
"""What a facet holds that is said by its name alone: "VIP cases"."""
REPLIED = bag("answered replied responded contestado contestados respondido respondidos")
TICKETS = bag("ticket tickets case cases incident incidents tique tiques incidencia incidencias caso casos")
NEGATORS = bag(
    "not no never without except excluding non nor neither lack lacks lacking missing cannot nobody noone none zero minus sin nunca nadie ningun ninguna excepto salvo"
)
AWAITING = bag("awaiting await awaits waiting need needs needing must owe owes owed esperando")
SKIPPED = bag(
    "a an any the yet been be being on in from of by have has had having ever to already longer with for at are is was were get got getting "
    "received receive send sent sending give given giving gave write written wrote make made our us it its their them still un una el la los las de con en han ha sido estan esta todavia aun than que son tiene tienen tenemos tener hubo assigned"
)
OPENED = bag(
    "opened created raised filed submitted reported logged abierto abierta abiertos abiertas abrio abrieron abrimos creado creados"
)
AUXILIARIES = bag("do does did don doesn didn to can could may might will would should")
STAYING = bag(
    "have has had is are was were be been being stay stays stayed remain remains left leave kept keep"
)
"""Verbs before "open" that make it a state."""
UPDATED = bag("updated changed modified touched actualizado actualizados cambiado cambiados")
FRAME = frozenset(
    stem
    for stem in stems(
        "ticket tickets case cases incident incidents tique incidencia caso how many much number count counts total amount sum list show tell "
        "find see look display want need know come came arrive arrived there exist currently current right moment present yet so far all every "
        "any overall altogether together us system queue desk opened open created raised filed submitted reported logged received receive get got "
        "send sent write wrote written customer customers client clients shop shops people user users buyer buyers company companies account "
        "accounts belong assigned assign handled handle handles owned owns working works status state priority subscription subscriptions "
        "dated date dates please hello hi hey thanks thank which who what whose name named question asked ask most have has do does "
        "hay tenemos tiene tienen muestra muestrame lista listame dame cuantos cuantas cuales quien total numero ahora actualmente todavia aun "
        "estan esta abierto cliente clientes estado prioridad asignado asignados recibido recibimos llegado nos por favor hola gracias todos todas abrio abrieron abrimos hubo tuvimos llegaron entraron sido "
        "updated changed modified since yesterday today exactly kind type sort one ones least more side would like want could can be either "
        "still remain remaining left also just only currently again everything anything summary overview break broken breakdown distribution "
        "split ordered order sorted sort first? contain contains containing mention mentions mentioning regarding concerning about word words say says "
        "else anyone anybody someone somebody ran run into hit meet met encounter encountered experience experienced prio severity urgency level levels hand hands deal dealing our my their its bot twohop been were plan billing problem problems issue issues per each"
    )
)
PRONOUN = re.compile(
    r"\b(?:assigned to me|my (?:own )?(?:\w+ )?(?:tickets?|cases?)|of mine|mine|asignad[oa]s a mi|mis (?:\w+ )?(?:tickets?|casos?))\b"
)
WHOSE = bag("me my own mine mi mis assigned to")
"""The words of it that restrict: "my open tickets"."""
ONCE: Mapping[str, int] = {"un": 1, "una": 1, "once": 1, "twice": 2}
_AMOUNT = r"\d+|one|two|three|four|five|ten|una?|uno|dos|tres"
_WAY = "more than|over|fewer than|less than|under|at least|at most|exactly|only|mas de|menos de|al menos"
HAVING = re.compile(
    rf"\b(?:(?P<way>{_WAY}) (?P<n>{_AMOUNT})|(?P<n_or>{_AMOUNT}) or (?P<way_or>more|fewer|less))"
    r"(?= (?:\w+ ){0,3}?(?:tickets?|cases?|requests?|claims?|casos?)\b)"
    rf"|\b(?P<way_often>{_WAY}) (?P<often>once|twice)\b"
)
"""How many tickets a customer must have: "more than two cases"."""
BOUNDS: Mapping[str, tuple[int | None, int | None]] = {
    **dict.fromkeys(("more than", "over", "mas de"), (1, None)),
    **dict.fromkeys(("fewer than", "less than", "under", "menos de"), (None, -1)),
    **dict.fromkeys(("at least", "al menos", "more"), (0, None)),
    **dict.fromkeys(("at most", "fewer", "less"), (None, 0)),
    **dict.fromkeys(("exactly", "only"), (0, 0)),
}
"""What to add to the number said for the least and for the most."""
WHO_MOST = re.compile(r"\bwho\b.*\b(?:most|fewest|least|busiest)\b|\bquien\b.*\bmas\b|\bbusiest\b")
PEOPLE_COUNTED = re.compile(
    r"\b(?:how many|number of|cuant[oa]s) (?:\w+ ){0,3}?(?:customer|client|shop|cliente)s\b"
    r"|\b(?:customer|client|shop|cliente)s\b.*\b(?:in total|altogether|overall|en total)\b"
)
ABOUT = re.compile(
    r"\b(?<!what )(?<!how )(?:about|mention(?:s|ed|ing)?|regarding|concerning|contain(?:s|ing)?|relat(?:ed|ing) to|with the words?|"
    r"(?:problems?|issues?|trouble|difficulties|errors?) with|complain(?:ed|s|ing)? (?:about|of)|dealing with|sobre|acerca de|mencionan?|problemas con)"
    r"\s+"
)
QUOTED = re.compile(r"[\"“]([^\"“”]{3,60})[\"”]|(?<!\w)['‘]([^'‘’]{3,60})['’](?!\w)")
LIMIT = (
    re.compile(r"\b(?:the )?(?P<way>last|latest|newest|most recent|first|oldest|earliest|top) (?P<n>\d{1,2})\b(?! (?:day|week|month|year|hour|business)s?\b)"),
    re.compile(r"\b(?:the )?(?P<n>\d{1,2}|two|three|four|five|ten) (?P<way>latest|newest|most recent|oldest|earliest)\b"),
    re.compile(r"\b(?P<way>oldest|earliest|newest|latest|most recent|longest waiting|mas antiguos?|mas recientes?|mas nuevos?)\b"),
    re.compile(r"\b(?:(?:order|sort)(?:ed)? (?:them |these |those )?)?(?:by (?P<way>priority)|most (?P<urgent>urgent|pressing)) ?(?:first)?\b"),
)  # fmt: skip
COMPARED = re.compile(r"\b(?P<way>newer|older|more recent)\b(?= (?:\w+ )?(?:tickets|cases)\b)")
"""Newer than what is not said: a list shows those first; a count cannot use it."""
COUNT = re.compile(r"\b(?:how many|number of|count|cuant[oa]s)\b")
ORDERS: Mapping[str, str] = {
    **dict.fromkeys(
        ("oldest", "first", "earliest", "longest waiting", "older", "mas antiguo", "mas antiguos"), "oldest"
    ),
    **dict.fromkeys(("urgent", "pressing", "priority"), "priority"),
}
ORDERS_OF_ONE = frozenset({"latest", "newest", "most recent", "oldest", "earliest"})
ONE_TICKET = re.compile(r" (?:\w+ ){0,3}?(?:ticket|case|incident|one)\b")
"""One ticket is asked for: "the oldest open ticket"."""
NEAR = 6
"""Words between the parts of an action's name, at most: "asked us last week for a refund"."""
PLAIN = frozenset(
    stems(
        "new newer older earlier previous past further additional later other more first last late same different duplicate interesting old recent few several"
    )
)
"""Words before "tickets" that are nothing to look for in their text."""

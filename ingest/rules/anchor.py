"""What a period runs from: the charge, the delivery, the day on which notice is given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ingest.atoms import atoms
from ingest.blocks import plain
from ingest.words import fold, words

# The patterns are matched against folded text: lower case, without accents.

_ANCHORS: Mapping[str, str] = {
    form: name
    for name, forms in {
        "charge": "charge charged charges payment payments paid pay billing billed debit debited cargo cobro pago pagado",
        "purchase": "purchase purchased purchases purchasing buying bought buy sale order ordered ordering compra comprado pedido adquisicion",
        "delivery": "delivery delivered delivers arrival arrives arrived handover entrega entregado entregados recepcion",
        "renewal": "renewal renewed renews renew renewing renovacion renovarse renueva",
        "opening": "opening opened submission submitted creation created report reported filed raised logged apertura abierto abrir abierta creacion",
        "invoice": "invoice invoiced factura",
        "cancellation": "cancellation cancelled canceled cancelling canceling cancel cancels termination terminated terminates baja cancelacion",
        "closure": "closure closing closed cierre",
        "signup": "signup sign-up registration registered activation activated signing signed subscribing subscribed alta registro activacion",
        "expiry": "expiry expiration expires expired expire vencimiento caducidad",
        "request": "request requested requests solicitud peticion",
        "approval": "approval approved aprobacion",
        "shipping": "shipping shipment shipped dispatch dispatched envio",
        "failure": "failure failed fails",
        "claim": "claim claimed reclamacion",
    }.items()
    for form in forms.split()
}
"""Words that name what a period runs from, and the anchor each of them means."""
_RECEIVED = frozenset(
    "receive receives received receiving receipt recibe recibir recibido recibirse recibirlo reciba".split()
)
_AT_OURS = re.compile(
    r"\b(?:at|to|in|with|by|en|a) (?:us|our|nuestr[oa]s?)\b(?! (?:customer|client|buyer))|\b(?:warehouse|depot|almacen)\b"
)
_NO_ANCHOR = frozenset(
    (
        "the a an your their its our his her each every any that this these those it they we you he she is are was were been being be has have had "
        "day days date dates moment time month months week weeks year years hour hours first last original initial relevant latest most recent full "
        "of on in at to by for from when which whom who end start beginning calendar next previous same actual respective later earlier "
        "el la los las su sus un una de del al dia fecha momento que en se es desde final fin inicio primer primera ultimo respectiva"
    ).split()
)
_BEFORE = r"before|prior to|ahead of|preceding|in advance of|antes de(?:l)?|previos? a(?:l)?|previas? a(?:l)?|(?:antelacion|preaviso) (?:a(?:l)?|sobre|respecto a(?:l)?)"
_FROM = r"from|after|since|following|desde|a partir de(?:l)?|despues de(?:l)?|tras|siguientes? a(?:l)?|posterior(?:es)? a(?:l)?|contados? (?:desde|a partir de(?:l)?)"
RUNS = re.compile(rf"\b(?:(?P<before>{_BEFORE})|(?P<after>{_FROM}))\b(?P<what>[^.;:()]*)")
RUNS_HERE = re.compile(
    rf"^[\s,'’)-]*(?:(?:counted|counting|starting|beginning|running|measured|calculated|calendar|naturales|contados|notice|de|with effect) )*"
    rf"(?:(?P<before>{_BEFORE})|(?P<after>{_FROM})|(?P<of>of|del?|al?))\b(?P<what>[^.;:()]*)"
)
_WHAT_ENDS = re.compile(
    r",|\b(?:due to|because|for|under|via|if|unless|provided|by|without|and|but|or|whichever|si|salvo|siempre|sin|y|o|pero)\b"
)
_TOLD = re.compile(
    r"\b(?:period|window|time|clock|term|target|count|warranty|deadline|hours?|days?|plazo|periodo|garantia|it|they|all|both|values)s?\b.{0,40}"
    r"\b(?:runs?|starts?|begins?|counts?|counted|measured|corren?|cuentan?|empiezan?|comienzan?|from|when|opens?)\b"
)
_STARTS = re.compile(
    r"\b(?:starts?|begins?|runs?|empieza|comienza) (?:when|once|on|cuando|con|el dia)(?P<what>[^.;]*)"
)
_DAY_ZERO = re.compile(
    r"\b(?P<what>[a-z ]{3,40}) (?:is|counts as|es) (?:day|el dia) (?:0|1|zero|one|cero|uno)\b"
)


def anchors_in(text: str) -> frozenset[str]:
    """Return what the words of a text may name for a period to run from: the charge of "we paid on"."""
    return frozenset(_ANCHORS[word] for word in words(text) if word in _ANCHORS)


def told_anchor(told: Sequence[str]) -> str | None:
    """Return what the section's periods run from, where a sentence says so: "The period runs from the charge"."""
    for line in told:
        folded = fold(plain(line))
        said = [match["what"] for match in _DAY_ZERO.finditer(folded)]
        if _TOLD.search(folded):
            said += [match["what"] for match in RUNS.finditer(folded) if match["after"]]
            said += [match["what"] for match in _STARTS.finditer(folded)]
        anchor = next(filter(None, map(known_anchor, said)), None)
        if anchor and not any(atom.kind == "duration" for atom in atoms(line)):
            return anchor
    return None


def known_anchor(what: str) -> str | None:
    """Return the anchor that a phrase names in words we know."""
    said = _said(what)
    named = [_ANCHORS[word] for word in said if word in _ANCHORS]
    if named[:1] == ["delivery"] and (_AT_OURS.search(what) or "returned" in said):
        # What arrives at the desk's own place is what the customer sent back.
        return "return"
    if _RECEIVED & set(said):
        # The customer's receiving the goods is their delivery; what the desk receives is something else.
        ours = (
            "return"
            if {"return", "returned", "back"} & set(said)
            else "receipt"
            if said[0] == "we"
            else "delivery"
        )
        return next((name for name in named if name in ("request", "invoice", "cancellation", "claim")), ours)
    return named[0] if named else None


def noun_anchor(what: str) -> str | None:
    """Return the word for an anchor we do not know: better a name no case has a date for than none."""
    said = _said(what)
    if not said or said[0] in ("that", "this", "which", "eso", "esto"):
        return None
    telling = [word for word in said if word not in _NO_ANCHOR]
    # "Before they take effect" is named by its end, "after the first failure" by its head.
    sentence = said[0] in ("it", "they", "we", "you", "he", "she", "se")
    return telling[-1 if sentence else 0] if telling else None


def _said(what: str) -> list[str]:
    return re.findall(r"[a-z]+(?:-[a-z]+)*", _WHAT_ENDS.split(what, maxsplit=1)[0])[:10]

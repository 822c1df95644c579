"""The Source that makes tickets searchable by similarity.

A change carries the ticket's document as JSON, not the row: what is not searched (customer, personal columns, status)
never leaves the ticket tables, and a ticket changes only when its words, facets or readers do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from ingest.chunk import ticket_document as document_of
from ingest.sources import Change, Changed, Complete, Failed, Unchanged
from ingest.types import Document, Ticket

MEDIA_TYPE = "application/json"


class TicketSource:
    """Tickets as a source; `tickets` reads every ticket that shall be in the index, each once, and tells of rows that are none."""

    name = "tickets"

    def __init__(self, tickets: Callable[[], Iterable[Ticket | Failed]]) -> None:
        self._tickets = tickets

    def changes(self, known: Mapping[str, str]) -> Iterator[Change]:
        """Yield what changed against `known`; a ticket that is no longer given is gone."""
        for ticket in self._tickets():
            if isinstance(ticket, Failed):
                yield ticket
                continue
            document = document_of(ticket, "")
            content = _to_json(document)
            revision = hashlib.sha256(content).hexdigest()
            if known.get(document.uri) == revision:
                yield Unchanged(document.uri)
            else:
                yield Changed(document.uri, revision, content, MEDIA_TYPE, document.link, ticket.number)
        yield Complete()


def ticket_document(changed: Changed) -> Document:
    """Return the document that a TicketSource's change carries."""
    data = json.loads(changed.content)
    data["readers"] = frozenset(data["readers"])
    return replace(Document(**data), revision=changed.revision)


def _to_json(document: Document) -> bytes:
    data = {
        "uri": document.uri,
        "source": document.source,
        "revision": document.revision,
        "title": document.title,
        "text": document.text,
        "link": document.link,
        "kind": document.kind,
        "readers": sorted(document.readers),
        "facets": dict(sorted(document.facets.items())),
        "authority": document.authority,
    }
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")

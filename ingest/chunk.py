"""A document -> chunks that fit the embedder, cut along its headings, tables, lists and sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from typing import Literal

from markdown_it.token import Token

from ingest.errors import ConfigError
from ingest.markdown import block_tokens, clean, inline_text, plain
from ingest.rules import find_rules
from ingest.types import Chunk, Document, Ticket

CHUNKER_VERSION = "1"
"""Part of the index's identity: raise it when the same document would be cut differently."""

_CHARACTERS_PER_TOKEN = 12
"""A tokenizer may call a 5,000-character word one unknown token; text is never longer than this allows."""
_SENTENCE_END = re.compile(r"""(?:[.!?…]["'”’»)\]*_]*\s+|[。！？]\s*|\n\s*)$""")
_UNIT = re.compile(r"[^\s。！？]+[。！？]*\s*|[。！？]+\s*|\s+")
_CELL = re.compile(r"(?<!\\)\|")

Kind = Literal["text", "table", "list", "code"]

_KINDS: Mapping[str, Kind] = {
    "table_open": "table",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "list_item_open": "list",
    "blockquote_open": "list",
    "fence": "code",
    "code_block": "code",
}


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of Markdown as it is written; `inner` are the tokens of a list's or quote's own blocks."""

    kind: Kind
    lines: tuple[str, ...]
    start: int
    token: Token | None = None
    inner: Sequence[Token] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")


@dataclass(slots=True)
class _Section:
    """Blocks under one heading; `heading` is that heading as it is written."""

    headings: tuple[str, ...]
    blocks: list[_Block]
    heading: str = ""


class _Unequal(Exception):
    """The tokens of a text are not those of its lines or words."""


@dataclass(frozen=True, slots=True)
class _Counts:
    """Three ways to the number of a text's tokens: one call, the sum of its lines, the sum of its words."""

    whole: Callable[[str], int]
    lines: Callable[[str], int]
    """For what is put together of the same lines again and again."""
    words: Callable[[str], int]
    """For a line that is tried at many lengths."""


@dataclass(frozen=True, slots=True)
class _Room:
    """How much fits into the chunks of one section."""

    counts: _Counts
    limit: int
    overlap: int
    before: str = ""
    """What stands above the body in every chunk: the context line, then the header of a table."""

    def fits(self, body: str) -> bool:
        return _size(f"{self.before}{body}", self.counts.lines) <= self.limit

    def under(self, head: str) -> _Room:
        return replace(self, before=f"{self.before}{head}\n")


def chunk(
    document: Document, count: Callable[[str], int], limit: int = 200, overlap: int = 40
) -> list[Chunk]:
    """Cut a document into chunks of at most `limit` tokens by `count`, the context line included.

    Every chunk begins with `Title > Heading > Sub` (contextual chunks, Anthropic 2024), belongs to one
    section and repeats nothing but a table's header and, where a paragraph had to be cut, `overlap` tokens.
    Every word of the document is in some chunk; a chunk carries the rules it states (tickets state none).
    Raises ConfigError when `limit` leaves no room for a single character.
    """
    title = " ".join(document.title.split())
    sections = _sections(document.text, title)
    try:
        cut = list(_texts(sections, title, _summed(count), limit, overlap))
    except _Unequal:
        cut = list(_texts(sections, title, _Counts(count, count, count), limit, overlap))
    chunks = [
        Chunk(
            id=f"{document.uri}#{position}",
            uri=document.uri,
            position=position,
            title=title,
            headings=headings,
            text=text,
            kind=document.kind,
            link=document.link,
            readers=document.readers,
            facets=document.facets,
            authority=document.authority,
            effective_from=document.effective_from,
            superseded_on=document.superseded_on,
            language=document.language,
        )
        for position, (headings, text) in enumerate(cut)
    ]
    if document.kind == "ticket":
        return chunks
    return [replace(found, rules=find_rules(found)) for found in chunks]


def _texts(
    sections: Sequence[_Section], title: str, counts: _Counts, limit: int, overlap: int
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the chunks' texts with the headings above them; raises _Unequal where a sum is not the count."""
    for section in _with_lost_headings(sections, title, counts.lines, limit):
        context, _ = _context(title, section.headings, counts.lines, limit)
        whole = "\n\n".join(block.text for block in section.blocks if block.text.strip())
        # Most sections are one chunk, which one count tells; one with more words than tokens is none.
        if len(whole.split()) < limit and _size(f"{context}\n{whole}", counts.whole) <= limit:
            yield section.headings, f"{context}\n{whole}"
            continue
        room = _Room(counts, limit, min(overlap, limit // 4), f"{context}\n")
        for body in _pack(section.blocks, room):
            text = f"{context}\n{body}"
            if counts.lines is not counts.whole:
                tokens = counts.whole(text)
                if tokens > limit or tokens != counts.lines(text):
                    raise _Unequal
            yield section.headings, text


def _summed(count: Callable[[str], int]) -> _Counts:
    """Return counts that add up those of a text's lines, and of its words, each counted once.

    The sum is the count wherever a tokenizer splits at white space before it looks for tokens, as WordPiece does.
    """
    special = count("")
    known = cache(lambda part: count(part) - special)

    def lines(text: str) -> int:
        return special + sum(known(line) for line in text.split("\n") if line)

    def words(text: str) -> int:
        return special + sum(map(known, text.split()))

    return _Counts(count, lines, words)


def ticket_document(ticket: Ticket, revision: str) -> Document:
    """Return a ticket as a document to be searched by similarity.

    It holds what was asked and what helped: no customer, no personal column; those stay in the ticket tables.
    """
    subject = " ".join(clean(ticket.subject).split())
    parts = ["## Problem", plain(subject), plain(clean(ticket.body).strip())]
    if ticket.resolution.strip():
        parts += ["## Resolution", plain(clean(ticket.resolution).strip())]
    return Document(
        uri=f"tickets:{ticket.number}",
        source="tickets",
        revision=revision,
        title=f"Ticket {ticket.number}: {subject}" if subject else f"Ticket {ticket.number}",
        text="\n\n".join(part for part in parts if part),
        link="",
        kind="ticket",
        readers=ticket.readers,
        facets=ticket.facets,
        authority="chat",
    )


def _size(text: str, count: Callable[[str], int]) -> int:
    return max(count(text), -(-len(text) // _CHARACTERS_PER_TOKEN))


def _context(
    title: str, headings: Sequence[str], count: Callable[[str], int], limit: int
) -> tuple[str, bool]:
    """Return the context line in at most two fifths of the limit, and whether it is whole."""
    most = limit * 2 // 5

    def fits(line: str) -> bool:
        return _size(line, count) <= most

    parts = [title, *headings]
    line = " > ".join(parts)
    if fits(line):
        return line, True
    for first in range(2, len(parts)):
        line = " > ".join([title, "…", *parts[first:]])
        if fits(line):
            return line, False
    line = f"{title} > … > {parts[-1]}" if headings else title
    keep = min(len(line) // 2, most * _CHARACTERS_PER_TOKEN)
    while keep and not fits(f"{line[:keep].rstrip()}…{line[-keep:].lstrip()}"):
        keep = keep * 9 // 10
    return (f"{line[:keep].rstrip()}…{line[-keep:].lstrip()}" if keep else ""), False


def _sections(text: str, title: str) -> list[_Section]:
    """Split Markdown at its headings; the first section is what stands before any."""
    text = re.sub(r"\r\n?", "\n", text)
    tokens = block_tokens(text)
    lines = text.split("\n")
    sections = [_Section((), [])]
    path: list[tuple[int, str]] = []
    for block in _blocks(tokens, lines, 0, len(lines)):
        if block.token is None or block.token.type != "heading_open":
            sections[-1].blocks.append(block)
            continue
        level = int(block.token.tag[1:])
        inline = block.inner[0]
        heading = inline_text(inline)
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, heading))
        headings = tuple(name for _, name in path if name and name.casefold() != title.casefold())
        section = _Section(headings, [], " ".join(inline.content.split()))
        if _words(inline.content) - _words(heading):
            # A link's address or an entity is in the source but not in what is shown: keep the source too.
            section.blocks.append(_Block("text", (section.heading,), block.start))
        sections.append(section)
    return sections


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _with_lost_headings(
    sections: Sequence[_Section], title: str, count: Callable[[str], int], limit: int
) -> list[_Section]:
    """Return the sections that have a body; the title and each heading that no context line shows whole are put into it."""
    sections = [replace(section, blocks=[*section.blocks]) for section in sections]

    def shown(index: int) -> bool:
        depth = len(sections[index].headings)
        for section in sections[index:]:
            if section.headings[:depth] != sections[index].headings:
                break
            if section.blocks and _context(title, section.headings, count, limit)[1]:
                return True
        return False

    for index in range(len(sections) - 1, -1, -1):
        heading = sections[index].heading if index else title
        if heading and not shown(index) and (index or any(section.blocks for section in sections)):
            sections[index].blocks.insert(0, _Block("text", (heading,), 0))
    return [section for section in sections if section.blocks]


def _blocks(tokens: Sequence[Token], lines: Sequence[str], start: int, end: int) -> Iterator[_Block]:
    """Yield the blocks of the lines `start` to `end`; lines that no token covers are text too."""
    index = 0
    while index < len(tokens):
        token, first = tokens[index], index + 1
        index += 1
        if token.nesting == 1:
            depth = 1
            while depth:
                depth += tokens[index].nesting
                index += 1
        if not token.map:
            continue
        top, bottom = max(token.map[0], start), min(token.map[1], end)
        if bottom <= top:
            continue
        yield from _gap(lines, start, top)
        if token.type != "hr":
            inner = tokens[first : index - 1] if token.nesting == 1 else ()
            yield _Block(_KINDS.get(token.type, "text"), tuple(lines[top:bottom]), top, token, inner)
        start = bottom
    yield from _gap(lines, start, end)


def _gap(lines: Sequence[str], start: int, end: int) -> Iterator[_Block]:
    if any(line.strip() for line in lines[start:end]):
        yield _Block("text", tuple(lines[start:end]), start)


def _pack(blocks: Sequence[_Block], room: _Room) -> Iterator[str]:
    """Yield bodies: pieces of one section, as many together as fit."""
    body = ""
    for block in blocks:
        for separator, piece in _pieces(block, room):
            joined = f"{body}{separator}{piece}" if body else piece
            if body and not room.fits(joined):
                yield body
                joined = piece
            body = joined
    if body:
        yield body


def _pieces(block: _Block, room: _Room) -> Iterator[tuple[str, str]]:
    """Yield a block in pieces that fit, each with what separates it from the piece before."""
    if not block.text.strip():
        return
    if room.fits(block.text):
        yield "\n\n", block.text
    elif block.kind == "table":
        for piece in _cut_table(block, room):
            yield "\n\n", piece
    elif block.kind == "list":
        lines = [""] * block.start + list(block.lines)
        separator = "\n\n"
        for inner in _blocks(block.inner, lines, block.start, len(lines)):
            for _, piece in _pieces(inner, room):
                yield separator, piece
                separator = "\n" if inner.token and inner.token.type == "list_item_open" else "\n\n"
    elif block.kind == "code":
        for piece in _cut_code(block, room):
            yield "\n\n", piece
    else:
        for piece in _cut_text(block.text, room):
            yield "\n\n", piece


def _cut_table(block: _Block, room: _Room) -> Iterator[str]:
    """Cut between rows; every piece repeats the header, and a row too long for one piece is written out."""
    header, delimiter, *rows = block.lines
    # A tokenizer takes each dash of a long delimiter row for a token.
    head = f"{header}\n{re.sub(r'-{3,}', '---', delimiter)}"
    rows = [row for row in rows if row.strip()]
    below = room.under(head)
    repeated = bool(rows) and below.fits("|")
    if not repeated:
        yield from _cut_text("\n".join([header] if rows else block.lines), room)
    body: list[str] = []
    for row in rows:
        if body and not below.fits("\n".join([*body, row])):
            yield "\n".join([head, *body])
            body = []
        if body or (repeated and below.fits(row)):
            body.append(row)
        else:
            yield from _write_out(_cells(header), _cells(row), room)
    if body:
        yield "\n".join([head, *body])


def _write_out(names: Sequence[str], cells: Sequence[str], room: _Room) -> Iterator[str]:
    """Write a row as lines of `column: cell`; every piece begins with its first cell, which names the row."""
    named = zip_longest(names, cells, fillvalue="")
    label, *others = [f"{name}: {cell}" if name else cell for name, cell in named]
    if "".join(others).strip() and label and _size(label, room.counts.lines) <= room.limit // 5:
        for piece in _cut_text("\n".join(others), room.under(label)):
            yield f"{label}\n{piece}"
    else:
        yield from _cut_text("\n".join([label, *others]), room)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in _CELL.split(re.sub(r"(?<!\\)\|\s*$", "", row.strip().removeprefix("|")))]


def _cut_code(block: _Block, room: _Room) -> Iterator[str]:
    """Cut between lines; every piece of a fence is fenced again and says that it continues."""
    opening, closing, lines = "", "", list(block.lines)
    if block.token and block.token.type == "fence":
        opening, *lines = lines
        indent = opening[: opening.find(block.token.markup)]
        closing = f"{' ' * len(indent)}{block.token.markup}"
        if lines and re.fullmatch(r"[\s>]*(?:`{3,}|~{3,})\s*", lines[-1]):
            closing = lines.pop()
    marker = "(continued)\n"
    wrapped = room.under(f"{marker}{opening}\n{closing}")
    if _size(wrapped.before, room.counts.lines) > room.limit * 4 // 5:
        yield from _cut_text(block.text, room)
        return
    body: list[str] = []
    started = False

    def piece() -> str:
        return f"{marker if started else ''}" + "\n".join(part for part in (opening, *body, closing) if part)

    for line in lines:
        parts = [line] if wrapped.fits(line) else _cut_text(line, replace(wrapped, overlap=0))
        for part in parts:
            if body and not wrapped.fits("\n".join([*body, part])):
                yield piece()
                started, body = True, []
            body.append(part)
    if body or not started:
        yield piece()


def _cut_text(text: str, room: _Room) -> Iterator[str]:
    """Cut at the end of a sentence where one is near, else between words; the next piece repeats the end."""
    room = replace(room, counts=replace(room.counts, lines=room.counts.words))
    units = _units(text, room)
    start = done = 0
    while done < len(units):
        end = _furthest(units, start, room)
        if end <= done:
            start = done
            continue
        if end < len(units):
            earliest = max(done, (start + end) // 2)
            end = next((at for at in range(end, earliest, -1) if _SENTENCE_END.search(units[at - 1])), end)
        yield "".join(units[start:end]).strip()
        done = end
        start = _repeated(units, start, end, room)


def _units(text: str, room: _Room) -> list[str]:
    """Split into words with the space after them, and words that do not fit into short runs of characters."""
    fits = cache(room.fits)
    units: list[str] = []
    for unit in _UNIT.findall(text.strip()):
        parts, length = [unit], 16
        while not all(fits(part.strip()) for part in parts):
            if not length:
                raise ConfigError(
                    f"max_tokens {room.limit!r} leaves no room below the context line; raise max_tokens"
                )
            parts = [unit[at : at + length] for at in range(0, len(unit), length)]
            length //= 2
        units.extend(parts)
    return units


def _furthest(units: Sequence[str], start: int, room: _Room) -> int:
    """Return the last end such that the units from `start` fit; a single unit always does."""
    low, high = start + 1, min(len(units), start + room.limit)
    while low < high:
        middle = (low + high + 1) // 2
        if room.fits("".join(units[start:middle]).strip()):
            low = middle
        else:
            high = middle - 1
    return low


def _repeated(units: Sequence[str], start: int, end: int, room: _Room) -> int:
    """Return where the next piece starts: `overlap` tokens before `end`, at a sentence if one starts."""
    empty = room.counts.lines("")
    first = end
    while first - 1 > start and room.counts.lines("".join(units[first - 1 : end])) - empty <= room.overlap:
        first -= 1
    return next((at for at in range(first, end) if _SENTENCE_END.search(units[at - 1])), first)

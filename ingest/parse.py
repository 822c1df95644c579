"""Bytes of a known media type -> title, Markdown text and typed front matter."""

from __future__ import annotations

import re
import reprlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Protocol, TypeVar

from ingest.config import SourceSettings
from ingest.errors import DocumentWithheld, UnreadableDocument
from ingest.front_matter import publication, split, vocabulary
from ingest.html import to_markdown
from ingest.markdown import block_tokens, clean, inline_text, one_line, plain
from ingest.types import AUTHORITY, EMPTY, MEMBERS, Authority, Document

PARSER_VERSION = "4"
"""Part of every revision: documents are read again when the way of reading them changes."""

T = TypeVar("T")

_COMMENT = re.compile(
    r"(?P<code>^[ >]*(?P<fence>`{3,}|~{3,}).*?(?:^[ >]*(?P=fence)|\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n\s*\n).)*?(?<!`)(?P=ticks)(?!`))"
    r"|<!--(?:(?!<!--).)*?-->",
    re.DOTALL | re.MULTILINE,
)
"""Code as it stands, or a comment: nobody sees a comment in the page, so it must not be quoted either."""
_KEYS: Mapping[str, tuple[str, ...]] = {
    "title": ("title",),
    "readers": ("readers", "reader"),
    "authority": ("authority",),
    "effective": ("effective", "effective_from", "effective_date"),
    "superseded": ("superseded", "superseded_on"),
    "facets": ("facets",),
    "link": ("link",),
    "language": ("language", "lang"),
}
"""Front matter keys that mean something here, with their other spellings."""
_NEAR = 0.75
"""How alike two keys are (0 to 1, as difflib counts) when one may be the other misspelt."""
_LANGUAGE = re.compile(r"([A-Za-z]{2,3})(?:[-_][A-Za-z0-9]+)*")
_OURS = frozenset(spelling for spellings in _KEYS.values() for spelling in spellings)
_GUESSES: Sequence[tuple[re.Pattern[str], Authority]] = (
    (re.compile(r"\b(?:terms|agreement)\b"), "terms"),
    (re.compile(r"\b(?:policy|policies|sla)\b"), "policy"),
    (re.compile(r"\bfaqs?\b"), "faq"),
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document's title, its text as Markdown without that title, and its front matter as written."""

    title: str
    text: str
    meta: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class DocumentMeta:
    """What front matter says about a document; None where it is silent."""

    readers: frozenset[str] | None = None
    authority: Authority | None = None
    effective_from: date | None = None
    superseded_on: date | None = None
    facets: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    link: str | None = None
    language: str = ""
    notes: tuple[str, ...] = ()


class Raw(Protocol):
    """A document as its source hands it over; `ingest.sources.Changed` is one."""

    @property
    def uri(self) -> str: ...
    @property
    def revision(self) -> str: ...
    @property
    def content(self) -> bytes: ...
    @property
    def media_type(self) -> str: ...
    @property
    def link(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def folder(self) -> str: ...


def to_document(raw: Raw, settings: SourceSettings, source: str) -> Document:
    """Read one document: front matter first, then the path globs of the settings, then the defaults.

    Raises UnreadableDocument when it has no text or its front matter cannot be used, and DocumentWithheld when it is not
    published or nobody can tell who may read it.
    """
    parsed = parse(raw.content, raw.media_type, raw.path)
    meta = metadata(parsed.meta, raw.path)
    readers = first_match(raw.path, settings.readers, raw.folder)
    return Document(
        uri=raw.uri,
        source=source,
        revision=raw.revision,
        title=parsed.title,
        text=parsed.text,
        link=meta.link or raw.link,
        readers=meta.readers or (frozenset(readers) if readers else frozenset({MEMBERS})),
        facets=meta.facets,
        authority=(
            meta.authority
            or first_match(raw.path, settings.authority, raw.folder)
            or guess_authority(raw.path, parsed.title)
        ),
        effective_from=meta.effective_from,
        superseded_on=meta.superseded_on,
        language=meta.language,
        notes=meta.notes,
    )


def parse(content: bytes, media_type: str, name: str) -> Parsed:
    """Return title, Markdown and front matter of `text/markdown`, `text/plain` or `text/html` bytes.

    `name` is the path: it titles a document without a title and stands in messages.
    Raises UnreadableDocument when the bytes are not text or hold no text, and DocumentWithheld when the document is not
    published or its front matter is malformed.
    """
    meta, text = split(clean(decode(content, name)), name, _is_ours)
    if unpublished := publication(meta, name)[0]:
        raise DocumentWithheld(unpublished)
    if media_type == "text/markdown":
        text, title = _COMMENT.sub(lambda found: found["code"] or "", text), ""
    elif media_type == "text/plain":
        text, title = plain(text), ""
    elif media_type == "text/html":
        text, title, language = to_markdown(text)
        if _LANGUAGE.fullmatch(language):
            meta = {"lang": language, **meta}
    else:
        raise UnreadableDocument(
            f"{name!r} has media type {media_type!r}; use text/markdown, text/plain or text/html"
        )
    given = meta.get("title")
    heading, without = _first_heading(text)
    title = one_line(given if isinstance(given, str) else "") or heading or title or _readable(name)
    if heading.casefold() == title.casefold():
        text = without
    text = re.sub(r"\n{3,}", "\n\n", text.strip("\n")) if media_type == "text/plain" else text.strip("\n")
    if not re.search(r"\w", text):
        raise UnreadableDocument(f"{name!r} has no text; write some below its title or remove the file")
    return Parsed(title, text, meta)


def metadata(meta: Mapping[str, object], name: str) -> DocumentMeta:
    """Return the front matter's values with their types.

    Raises UnreadableDocument naming key, value and what is allowed. A key that may be `readers` misspelt is refused, as
    the document would be everybody's; other keys that nobody knows are noted.
    """
    others = vocabulary().others | vocabulary().publication
    unknown = [key for key in meta if key not in _OURS | others]
    for key in unknown:
        if _near(key, _KEYS["readers"]):
            raise DocumentWithheld(
                f"{name!r}: front matter key {key!r} looks like 'readers' misspelt; write readers if it says who may "
                "read this, otherwise give it another name"
            )

    def value_of(key: str) -> object:
        for spelling in _KEYS[key]:
            value = meta.get(spelling)
            if value not in (None, "", "~", "null"):
                return value
            if spelling in meta and key == "readers":
                raise _bad(name, spelling, value, "name at least one reader label, or remove the line")
        return None

    effective = _date(value_of("effective"), "effective", name)
    superseded = _date(value_of("superseded"), "superseded", name)
    if effective and superseded and superseded <= effective:
        raise _bad(name, "superseded", superseded, f"it must be later than effective {effective}")
    return DocumentMeta(
        readers=_readers(value_of("readers"), name),
        authority=_authority(value_of("authority"), name),
        effective_from=effective,
        superseded_on=superseded,
        facets=_facets(value_of("facets"), name),
        link=_link(value_of("link"), name),
        language=_language(value_of("language"), name),
        notes=(*map(_note, unknown), *publication(meta, name)[1]),
    )


def decode(content: bytes, name: str) -> str:
    """Return the text of UTF-8 bytes, or of UTF-16 bytes that begin with a byte order mark."""
    utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not utf16 and b"\x00" in content:
        raise UnreadableDocument(f"{name!r} is binary, not text; only Markdown, text and HTML are read")
    encoding = "UTF-16" if utf16 else "UTF-8"
    try:
        text = content.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableDocument(
            f"{name!r} is not {encoding} (byte {error.start}); save it as UTF-8"
        ) from error
    # Almost any bytes are some UTF-16, and what they are then is no text.
    if utf16 and (strange := next(filter(_is_strange, text), "")):
        raise UnreadableDocument(
            f"{name!r} is binary, not text: read as UTF-16 it holds {strange!r}; only Markdown, text and HTML are read"
        )
    return text


def _is_strange(char: str) -> bool:
    """Tell whether no text holds a character; above the first plane it may be newer than our tables."""
    kind = unicodedata.category(char)
    return (kind == "Cc" and char not in "\t\n\x0b\x0c\r\x85") or (kind in ("Cn", "Co") and char <= "\uffff")


def matches(path: str, glob: str) -> bool:
    """Say whether a path inside the source matches a glob.

    `*` crosses folders, so that `internal/*` also covers what is deeper; `**/` also means no folder at all; a
    glob that ends with `/` means everything below.
    """
    glob = f"{glob}*" if glob.endswith("/") else glob
    return fnmatchcase(path, glob) or fnmatchcase(path, glob.replace("**/", ""))


def first_match(path: str, globs: Mapping[str, T], folder: str = "") -> T | None:
    """Return the value of the first glob that matches the path, with or without its folder's name before it."""
    paths = (path, f"{folder}/{path}") if folder else (path,)
    return next((value for glob, value in globs.items() if any(matches(p, glob) for p in paths)), None)


def guess_authority(path: str, title: str) -> Authority:
    """Return the kind of text that the words of its path and title suggest, `help` when none does."""
    words = re.sub(r"[^a-z]+", " ", f"{path} {title}".casefold())
    return next((authority for pattern, authority in _GUESSES if pattern.search(words)), "help")


def _near(key: str, others: Iterable[str]) -> str:
    """Return the one of the others that a key may be misspelt; empty where it is none."""
    return next(iter(get_close_matches(key, others, 1, _NEAR)), "")


def _is_ours(key: str) -> bool:
    return key in _OURS or (key not in vocabulary().others and bool(_near(key, _KEYS["readers"])))


def _note(key: str) -> str:
    meant = _near(key, _OURS)
    return f"front matter key {key!r} means nothing here{f'; is it {meant!r}?' if meant else ''}"


def _bad(name: str, key: str, value: object, allowed: str) -> UnreadableDocument:
    refused = DocumentWithheld if key in _KEYS["readers"] else UnreadableDocument
    return refused(f"{name!r}: front matter {key}: {reprlib.repr(value)} cannot be used; {allowed}")


def _readers(value: object, name: str) -> frozenset[str] | None:
    if value is None:
        return None
    labels = value.split(",") if isinstance(value, str) else value
    if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
        readers = frozenset(label.strip() for label in labels if label.strip())
        if readers:
            return readers
    raise _bad(name, "readers", value, "write one label or a list of labels, such as [support, finance]")


def _authority(value: object, name: str) -> Authority | None:
    if value is None:
        return None
    for authority in AUTHORITY:
        if isinstance(value, str) and value.strip().casefold() == authority:
            return authority
    raise _bad(name, "authority", value, f"use one of {', '.join(AUTHORITY)}")


def _date(value: object, key: str, name: str) -> date | None:
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return datetime.fromisoformat(str(value).strip()).date()
    except ValueError as error:
        raise _bad(name, key, value, "write a date as YYYY-MM-DD") from error


def _facets(value: object, name: str) -> Mapping[str, str]:
    if value is None:
        return EMPTY
    if isinstance(value, dict) and all(isinstance(item, str | int | float) for item in value.values()):
        return {str(key).strip(): str(item).strip() for key, item in value.items()}
    raise _bad(name, "facets", value, "write one value a name, such as {plan: Team}")


def _link(value: object, name: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and re.fullmatch(r"https?://\S+", value.strip()):
        return value.strip()
    raise _bad(name, "link", value, "write a whole address that begins with https:// or http://")


def _language(value: object, name: str) -> str:
    if value is None:
        return ""
    found = _LANGUAGE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found:
        return found[1].casefold()
    raise _bad(name, "language", value, "write a code such as en, es or pt-BR")


def _readable(name: str) -> str:
    words = one_line(clean(re.sub(r"[-_.]+", " ", PurePosixPath(name).stem))) or name
    return words[:1].upper() + words[1:]


def _first_heading(text: str) -> tuple[str, str]:
    """Return the first level-1 heading, and the text without it where nothing stands before it."""
    if not any(line.lstrip().startswith(("# ", "#\t", "=")) for line in text.split("\n")):
        return "", text
    for index, token in enumerate(tokens := block_tokens(text)):
        if token.type == "heading_open" and token.tag == "h1" and token.level == 0 and token.map:
            title = inline_text(tokens[index + 1])
            if title:
                lines = text.split("\n")
                return title, "\n".join(lines[token.map[1] :]) if index == 0 else text
    return "", text

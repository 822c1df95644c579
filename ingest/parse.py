"""Bytes of a known media type -> title, Markdown text and typed front matter."""

from __future__ import annotations

import re
import reprlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from fnmatch import fnmatchcase
from html.parser import HTMLParser
from pathlib import PurePosixPath
from typing import Protocol, TypeVar

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ingest.config import SourceSettings
from ingest.errors import UnreadableDocument
from ingest.types import AUTHORITY, EMPTY, MEMBERS, Authority, Document

PARSER_VERSION = "2"
"""Part of every revision: documents are read again when the way of reading them changes."""

T = TypeVar("T")

_NEWLINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Control, zero-width, bidi and tag characters: nobody sees them, so nobody may be steered by them."""
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIRST_KEY = re.compile(r"---[ \t]*\n((?:[ \t]*(?:#[^\n]*)?\n)*)([A-Za-z_][\w -]*):(?:[ \t\n]|\Z)")
_COMMENT = re.compile(
    r"(?P<code>^[ >]*(?P<fence>`{3,}|~{3,}).*?(?:^[ >]*(?P=fence)|\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n\s*\n).)*?(?<!`)(?P=ticks)(?!`))"
    r"|<!--(?:(?!<!--).)*?-->",
    re.DOTALL | re.MULTILINE,
)
"""Code as it stands, or a comment: nobody sees a comment in the page, so it must not be quoted either."""
_BLOCK_START = re.compile(
    r"^( {0,3})(?=#{1,6}(?:\s|$)|>|`{3}|~{3}|\||<[A-Za-z!/?]|[-=_*:|][-=_*:|\s]*$|\[[^\]\n]+\]:)"
)
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
"""Front matter keys that mean something here, with their other spellings; all other keys are ignored."""
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

    Raises UnreadableDocument when it has no text or its front matter cannot be used.
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
    )


def parse(content: bytes, media_type: str, name: str) -> Parsed:
    """Return title, Markdown and front matter of `text/markdown`, `text/plain` or `text/html` bytes.

    `name` is the path: it titles a document without a title and stands in messages.
    Raises UnreadableDocument when the bytes are not text, hold no text, or the front matter is malformed.
    """
    text = clean(decode(content, name))
    meta, text = _split_front_matter(text, name)
    if media_type == "text/markdown":
        text, title = _COMMENT.sub(lambda found: found["code"] or "", text), ""
    elif media_type == "text/plain":
        text, title = plain(text), ""
    elif media_type == "text/html":
        text, title, language = _html_to_markdown(text)
        if _LANGUAGE.fullmatch(language):
            meta = {"lang": language, **meta}
    else:
        raise UnreadableDocument(
            f"{name!r} has media type {media_type!r}; use text/markdown, text/plain or text/html"
        )
    given = meta.get("title")
    heading, without = _first_heading(text)
    title = _one_line(given if isinstance(given, str) else "") or heading or title or _readable(name)
    if heading.casefold() == title.casefold():
        text = without
    text = re.sub(r"\n{3,}", "\n\n", text.strip("\n")) if media_type == "text/plain" else text.strip("\n")
    if not re.search(r"\w", text):
        raise UnreadableDocument(f"{name!r} has no text; write some below its title or remove the file")
    return Parsed(title, text, meta)


def metadata(meta: Mapping[str, object], name: str) -> DocumentMeta:
    """Return the front matter's values with their types.

    Raises UnreadableDocument naming key, value and what is allowed.
    """

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
    )


def decode(content: bytes, name: str) -> str:
    """Return the text of UTF-8 bytes, or of UTF-16 bytes that begin with a byte order mark."""
    utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not utf16 and b"\x00" in content:
        raise UnreadableDocument(f"{name!r} is binary, not text; only Markdown, text and HTML are read")
    try:
        return content.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        encoding = "UTF-16" if utf16 else "UTF-8"
        raise UnreadableDocument(
            f"{name!r} is not {encoding} (byte {error.start}); save it as UTF-8"
        ) from error


def clean(text: str) -> str:
    """Return the text with line feeds only and without control, zero-width and bidi characters."""
    return _INVISIBLE.sub("", _NEWLINES.sub("\n", text))


def plain(text: str) -> str:
    """Return plain text as Markdown: no line of it can start a heading, table, fence, quote or rule."""
    lines = (re.sub(r"^ {4,}", "   ", line.replace("\t", "    ").rstrip()) for line in text.split("\n"))
    return "\n".join(_BLOCK_START.sub(r"\1\\", line) for line in lines)


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


def _split_front_matter(text: str, name: str) -> tuple[Mapping[str, object], str]:
    text = text.lstrip("\n")
    block = _FRONT_MATTER.match(text)
    first = _FIRST_KEY.match(text)
    ours = first is not None and _normal_key(first[2]) in _OURS
    if not block:
        if ours:
            raise UnreadableDocument(f"{name!r}: front matter is never closed; add a line with --- after it")
        return {}, text
    # A rule is followed by a blank line or by prose, front matter by a key; a key of ours settles it.
    meant = ours or (first is not None and not first[1].startswith("\n"))
    try:
        # BaseLoader keeps scalars as written: a version 1.10 stays "1.10" and a country NO stays "NO".
        data = yaml.BaseLoader(block[1]).get_single_data()
    except (yaml.YAMLError, RecursionError) as error:
        if not meant:
            return {}, text
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        problem = getattr(error, "problem", None) or type(error).__name__
        raise UnreadableDocument(
            f"{name!r}: front matter is malformed at line {line} ({problem}); mend it or remove it"
        ) from error
    if not isinstance(data, dict):
        return {}, text if block[1].strip() else text[block.end() :]
    meta = {_normal_key(str(key)): value for key, value in data.items()}
    if not meant and not _OURS & meta.keys():
        return {}, text
    return meta, text[block.end() :]


def _normal_key(key: str) -> str:
    return key.strip().casefold().replace("-", "_").replace(" ", "_")


def _bad(name: str, key: str, value: object, allowed: str) -> UnreadableDocument:
    return UnreadableDocument(
        f"{name!r}: front matter {key}: {reprlib.repr(value)} cannot be used; {allowed}"
    )


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


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _readable(name: str) -> str:
    words = _one_line(re.sub(r"[-_.]+", " ", PurePosixPath(name).stem)) or name
    return words[:1].upper() + words[1:]


def inline_text(token: Token) -> str:
    """Return what a reader sees of an inline token, on one line."""
    shown = (
        child.content
        if child.type in ("text", "code_inline", "image", "html_inline", "text_special")
        else " "
        for child in token.children or ()
        if child.content or child.type in ("softbreak", "hardbreak")
    )
    return _one_line("".join(shown))


def _first_heading(text: str) -> tuple[str, str]:
    """Return the first level-1 heading, and the text without it where nothing stands before it."""
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(text)
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == "h1" and token.level == 0 and token.map:
            title = inline_text(tokens[index + 1])
            if title:
                lines = text.split("\n")
                return title, "\n".join(lines[token.map[1] :]) if index == 0 else text
    return "", text


def _tags(names: str) -> frozenset[str]:
    return frozenset(names.split())


_DROPPED = _tags(
    "audio canvas dialog iframe nav noscript object script select style svg template textarea video"
)
_CHROME = _tags("header footer")
"""Dropped too, unless they stand inside the content itself."""
_CONTENT = _tags("main article section")
_VOID = _tags("area base br col embed hr img input link meta param source track wbr")
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS = frozenset(_HEADINGS) | _tags(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure "
    "footer form head header hr html li main ol p pre section summary table tbody td tfoot th thead title tr ul"
)
_CLOSES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (_tags("li"), _tags("ul ol")),
    "dt": (_tags("dt dd"), _tags("dl")),
    "dd": (_tags("dt dd"), _tags("dl")),
    "tr": (_tags("tr"), _tags("table")),
    "td": (_tags("td th"), _tags("tr table")),
    "th": (_tags("td th"), _tags("tr table")),
}
"""A start tag closes these open elements, up to that container: end tags that HTML lets people leave out."""
_DEEPEST = 12
"""Lists and quotes nested deeper are written at this depth."""


@dataclass(slots=True)
class _Nest:
    """An open list item or quote: the prefix of its first line, then of its other lines."""

    first: str
    rest: str
    fresh: bool = True


@dataclass(slots=True)
class _Cell:
    text: str
    header: bool
    columns: int
    rows: int


@dataclass(slots=True)
class _Table:
    rows: list[list[_Cell]] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    tag: str
    dropped: bool
    attributes: Mapping[str, str]
    start: int = 0
    """For a link or code: where its text begins in the inline buffer."""
    number: int = 0
    """For a list: how many items it has shown."""


class _Writer(HTMLParser):
    """Write HTML as Markdown while it is read; there is no tree, so depth cannot exhaust the stack."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self.title = ""
        self.language = ""
        self._open: list[_Open] = []
        self._counts: Counter[str] = Counter()
        self._nests: list[_Nest] = []
        self._tables: list[_Table] = []
        self._inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {key: value or "" for key, value in attrs}
        if tag == "html":
            self.language = attributes.get("lang", "")
        if tag in _VOID:
            if not self._dropping():
                self._void(tag, attributes)
            return
        self._close_implied(tag)
        opened = _Open(tag, self._dropping() or self._is_dropped(tag, attributes), attributes)
        if not opened.dropped:
            self._begin(opened)
        self._open.append(opened)
        self._counts[tag] += 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # HTML knows no self-closing `<div/>`: as in a browser, the slash means nothing.
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._counts[tag]:
            while self._pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._counts["title"] and not self._counts["svg"]:
            self.title = self.title or _one_line(data)
        elif not self._dropping():
            self._inline.append(data if self._counts["pre"] else re.sub(r"\s+", " ", data))

    def finish(self) -> str:
        """Close what is still open and return the Markdown."""
        self.close()
        while self._open:
            self._pop()
        self._flush()
        return "\n".join(self.out)

    def _dropping(self) -> bool:
        return bool(self._open) and self._open[-1].dropped

    def _is_dropped(self, tag: str, attributes: Mapping[str, str]) -> bool:
        style = attributes.get("style", "").replace(" ", "").casefold()
        return (
            tag in _DROPPED
            or (tag in _CHROME and not any(self._counts[content] for content in _CONTENT))
            or attributes.get("hidden", "until-found") != "until-found"
            or attributes.get("aria-hidden") == "true"
            or "display:none" in style
            or "visibility:hidden" in style
        )

    def _close_implied(self, tag: str) -> None:
        if tag in _BLOCKS and self._counts["p"] and self._open[-1].tag == "p":
            self._pop()
        closes, within = _CLOSES.get(tag, (frozenset(), frozenset()))
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index].tag in within:
                return
            if self._open[index].tag in closes:
                while len(self._open) > index:
                    self._pop()
                return

    def _void(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "br":
            self._inline.append(" " if self._tables else "\n")
        elif tag == "hr":
            self._flush()
        elif tag == "img":
            self._inline.append(attributes.get("alt", ""))

    def _begin(self, opened: _Open) -> None:
        tag = opened.tag
        if tag in ("a", "code"):
            opened.start = len(self._inline)
        elif self._tables and tag in _BLOCKS:
            self._inline.append(" ")
            opened.start = len(self._inline)
        elif tag in _BLOCKS:
            self._flush()
        if tag == "li" and not self._tables:
            self._begin_item()
        elif tag == "blockquote" and not self._tables:
            self._nests.append(_Nest("> ", "> "))
        elif tag == "table":
            self._tables.append(_Table())
        elif tag == "tr" and len(self._tables) == 1:
            self._tables[0].rows.append([])

    def _begin_item(self) -> None:
        parent = next((item for item in reversed(self._open) if item.tag in ("ul", "ol")), None)
        marker = "- "
        if parent and parent.tag == "ol":
            start = parent.attributes.get("start", "1")
            marker = f"{(int(start) if re.fullmatch('[0-9]{1,6}', start) else 1) + parent.number}. "
            parent.number += 1
        self._nests.append(_Nest(marker, " " * len(marker)))

    def _pop(self) -> str:
        closed = self._open.pop()
        self._counts[closed.tag] -= 1
        if not closed.dropped:
            self._end(closed)
        return closed.tag

    def _end(self, closed: _Open) -> None:
        tag = closed.tag
        if tag == "a":
            self._end_link(closed)
        elif tag == "code" and not self._counts["pre"]:
            self._replace_inline(closed.start, _code)
        elif tag in ("td", "th") and len(self._tables) == 1:
            self._end_cell(closed)
        elif tag == "table" and self._tables:
            table = self._tables.pop()
            if self._tables:
                self._inline.append(" ")
            else:
                self._flush()
                self._emit(_rows(table), "table")
        elif self._tables and tag != "caption":
            self._inline.append(" " if tag in _BLOCKS else "")
        elif tag == "pre":
            self._flush_code()
        elif tag in _HEADINGS:
            self._flush(_HEADINGS[tag])
        elif tag in _BLOCKS:
            self._flush()
        if tag in ("li", "blockquote") and self._nests and not self._tables:
            self._nests.pop()

    def _end_link(self, closed: _Open) -> None:
        target = closed.attributes.get("href", "").strip()
        if not re.match(r"(?i)(?:https?:|mailto:|tel:|/|\./|\.\./|[\w-]+(?:[./?#]|$)(?!:))", target):
            return
        address = re.sub(r"[\x00-\x20<>]", lambda found: f"%{ord(found[0]):02X}", target)
        address = f"<{address}>" if re.search(r"[()]", address) else address
        self._replace_inline(closed.start, lambda text: f"[{text.strip()}]({address})")

    def _replace_inline(self, start: int, change: Callable[[str], str]) -> None:
        text = "".join(self._inline[start:])
        if text.strip():
            pad = " " if text[:1].isspace() else ""
            self._inline[start:] = [pad + change(text) + (" " if text[-1:].isspace() else "")]

    def _end_cell(self, closed: _Open) -> None:
        text = _one_line("".join(self._inline[closed.start :])).replace("|", "\\|")
        del self._inline[closed.start :]
        rows = self._tables[0].rows
        if not rows:
            rows.append([])
        header = closed.tag == "th" or bool(self._counts["thead"])
        rows[-1].append(_Cell(text, header, _span(closed, "colspan"), _span(closed, "rowspan")))

    def _take(self) -> str:
        """Return the inline text and start anew; a link or code that is still open goes on from there."""
        text = "".join(self._inline)
        self._inline.clear()
        if self._counts["a"] or self._counts["code"]:
            for opened in self._open:
                opened.start = 0
        return text

    def _flush(self, heading: str = "") -> None:
        text = self._take()
        lines = [_one_line(line) for line in text.split("\n")]
        lines = [line for line in lines if line]
        if heading:
            self._emit([f"{heading} {_one_line(text)}"] if lines else [], "heading")
        else:
            self._emit(plain("\n".join(lines)).split("\n") if lines else [], "text")

    def _flush_code(self) -> None:
        code = self._take().strip("\n")
        if code.strip():
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
            self._emit([fence, *code.split("\n"), fence], "code")

    def _emit(self, lines: Sequence[str], kind: str) -> None:
        if not lines:
            return
        nests = [] if kind == "heading" else self._nests[:_DEEPEST]
        tight = kind == "text" and any(nest.fresh and nest.rest.isspace() for nest in nests)
        if self.out and not (tight and self._tight):
            settled = next((index for index, nest in enumerate(nests) if nest.fresh), len(nests))
            self.out.append("".join(nest.rest for nest in nests[:settled]).rstrip())
        rest = "".join(nest.rest for nest in nests)
        for index, line in enumerate(lines):
            prefix = (
                "".join(nest.first if nest.fresh else nest.rest for nest in nests) if index == 0 else rest
            )
            self.out.append((prefix + line).rstrip())
        for nest in nests:
            nest.fresh = False
        self._tight = kind == "text" and bool(nests) and nests[-1].rest.isspace()

    _tight = False
    """The last block written is the text of a list item: the next item follows without a blank line."""


def _code(text: str) -> str:
    text = _one_line(text)
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _span(cell: _Open, name: str) -> int:
    value = cell.attributes.get(name, "1")
    return min(max(int(value), 1), 50) if re.fullmatch(r"[0-9]{1,4}", value) else 1


def _rows(table: _Table) -> list[str]:
    """Write a table as GFM; a cell that spans rows or columns is repeated: every row can be read alone."""
    grid: list[list[str]] = []
    carried: dict[int, tuple[int, str]] = {}
    for row in table.rows:
        line: list[str] = []

        def carry(line: list[str] = line) -> None:
            while len(line) in carried:
                left, text = carried.pop(len(line))
                if left > 1:
                    carried[len(line)] = (left - 1, text)
                line.append(text)

        for cell in row:
            carry()
            for _ in range(cell.columns):
                if cell.rows > 1:
                    carried[len(line)] = (cell.rows - 1, cell.text)
                line.append(cell.text)
        carry()
        grid.append(line)
    kept = [(line, row) for line, row in zip(grid, table.rows, strict=True) if any(line)]
    width = max((len(line) for line, _ in kept), default=0)
    if width < 2:
        return plain("\n\n".join(line[0] for line, _ in kept)).split("\n") if kept else []
    first_is_header = all(cell.header for cell in kept[0][1]) or not any(
        cell.header for _, row in kept for cell in row
    )
    lines = [line + [""] * (width - len(line)) for line, _ in kept]
    if not first_is_header:
        lines.insert(0, [""] * width)
    lines.insert(1, ["---"] * width)
    return [f"| {' | '.join(line)} |" for line in lines]


def _html_to_markdown(html: str) -> tuple[str, str, str]:
    """Return Markdown, the page's `<title>` and its `lang`; broken HTML is read as far as it can be."""
    writer = _Writer()
    # `<![if ...]>`, `<![CDATA[`: browsers skip them, the standard library's parser stops at unknown ones.
    writer.feed(re.sub(r"<!\[[^>]*>?", "", html))
    return clean(writer.finish()), writer.title, writer.language

"""HTML -> Markdown, written while it is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

from ingest.markdown import clean, one_line, plain


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
            self.title = self.title or one_line(data)
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
        text = one_line("".join(self._inline[closed.start :])).replace("|", "\\|")
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
        lines = [one_line(line) for line in text.split("\n")]
        lines = [line for line in lines if line]
        if heading:
            self._emit([f"{heading} {one_line(text)}"] if lines else [], "heading")
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
    text = one_line(text)
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


def to_markdown(html: str) -> tuple[str, str, str]:
    """Return Markdown, the page's `<title>` and its `lang`; broken HTML is read as far as it can be."""
    writer = _Writer()
    # `<![if ...]>`, `<![CDATA[`: browsers skip them, the standard library's parser stops at unknown ones.
    writer.feed(re.sub(r"<!\[[^>]*>?", "", html))
    return clean(writer.finish()), writer.title, writer.language

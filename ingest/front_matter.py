"""Front matter in the dialects that tools write: told from text, read, and whether it says that a page is not published."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import date, datetime, time
from functools import cache
from importlib import resources
from pathlib import PurePosixPath

import yaml

from ingest.errors import DocumentWithheld
from ingest.words import fold

_LANGUAGES: Mapping[str, str] = {"-": "yaml", "+": "toml", ";": "json", "yml": "yaml"}
_CLOSING: Mapping[str, str] = {"yaml": "---", "toml": "+++", "json": ";;;", "fields": "-->"}
_LINE = re.compile(r"(?:\.\. )?([\"']?)([A-Za-z_][\w -]*?)\1[ \t]*(?::(?=\s|\Z)|=)[ \t]*(.*)|\[.*\]\s*\Z|\{")
"""A line of front matter: a key with its value after a colon or an equals sign, a table, or an object."""
_JSON_KEY = re.compile(r"\"([^\"\n]+)\"\s*:")
_WITHIN = frozenset(("", " ", "\t", "#", "-", "]", "}"))
"""What a line of front matter without a key begins with: a comment, or more of the line before."""
_BEGINNING = 2_000
"""Characters of an object that is none in which keys are looked for."""
_BLANK = " \t\n\ufeff"
_DRAFT_FOLDER = "_drafts"
"""What is in a folder of this name, Jekyll and Hexo do not publish."""

IsKey = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of other tools, as `front_matter.toml` lists and explains them."""

    others: frozenset[str]
    held_if_true: frozenset[str]
    held_if_false: frozenset[str]
    states: frozenset[str]
    held_values: frozenset[str]
    shown_values: frozenset[str]
    yes: frozenset[str]
    no: frozenset[str]

    @property
    def publication(self) -> frozenset[str]:
        """The keys that say whether a page is published."""
        return self.held_if_true | self.held_if_false | self.states


@cache
def vocabulary() -> Vocabulary:
    """Return the words of other tools."""
    data = tomllib.loads(resources.files("ingest").joinpath("front_matter.toml").read_text("utf-8"))
    return Vocabulary(*(frozenset(map(fold, data[field.name])) for field in fields(Vocabulary)))


def normal_key(key: str) -> str:
    """Return a key as it is compared: `Effective-Date` is `effective_date`."""
    return key.strip().casefold().replace("-", "_").replace(" ", "_")


def split(text: str, name: str, is_ours: IsKey) -> tuple[Mapping[str, object], str]:
    """Return the front matter by normal keys, and the text behind it; text that begins without one is returned whole.

    Read is YAML between `---`, TOML between `+++`, JSON between `;;;` or as an object, each of them also by its name
    behind the mark (`---toml`), and lines like `title: …` in a comment or before the first blank line. Scalars stay as
    written. `is_ours` tells the keys that mean something to the caller; one of them tells front matter from prose.

    Raises:
        DocumentWithheld: it is malformed, never closed or of a language that is not read: nobody can tell who may read
            the document.
    """

    def is_known(key: str) -> bool:
        return key in vocabulary().publication or is_ours(key)

    text = text.lstrip(_BLANK)
    if text.startswith("{"):
        return _object(text, name, is_known)
    if (block := _block(text)) is None:
        return _bare(text)
    keys = _keys(block.content)
    known = any(map(is_known, keys))
    meant = known or bool(keys and block.exact and not block.content.startswith("\n"))
    if not block.closed:
        if known or (block.sure and keys):
            mark = _CLOSING.get(block.language, "---")
            raise DocumentWithheld(f"{name!r}: front matter is never closed; add a line with {mark} after it")
        return {}, text
    try:
        data = _load(block.language, block.content)
        if data is None and known:
            raise ValueError(" (it holds no keys)")
    except (ValueError, RecursionError) as error:
        if not (meant or block.sure):
            return {}, text
        reason = error if isinstance(error, ValueError) else " (it is nested too deeply)"
        raise DocumentWithheld(
            f"{name!r}: front matter is malformed{reason}; mend it or remove it"
        ) from error
    if data is None:
        return {}, text if block.content.strip() else block.rest
    meta = _normal(data)
    if block.language == "fields":
        meant = any(map(is_known, meta))
    return (meta, block.rest) if meant or block.sure or any(map(is_known, meta)) else ({}, text)


def publication(meta: Mapping[str, object], path: str) -> tuple[str, tuple[str, ...]]:
    """Return why a page is not published, empty where it is, and a note for each value that nobody knows.

    A date of publication is none: whether a page is published on it, and by whom, its text does not say.
    """
    words = vocabulary()
    if _DRAFT_FOLDER in PurePosixPath(path).parts[:-1]:
        return f"it is in a folder {_DRAFT_FOLDER!r}; move it out of there to have it read", ()
    held: dict[str, str] = {}
    notes: list[str] = []
    for key, value in meta.items():
        if key not in words.publication or value in ("", None, "~", "null"):
            continue
        said = fold(" ".join(str(value).replace("_", " ").replace("-", " ").split()))
        settled = said in words.yes or said in words.no
        negated = key not in words.states and settled and (said in words.yes) == (key in words.held_if_true)
        if negated or said in words.held_values:
            publish = "false" if key in words.held_if_true else "published" if key in words.states else "true"
            held[f"{key}: {value}"] = f"{key}: {publish}"
        elif not (settled or said in words.shown_values or _is_date(value)):
            notes.append(
                f"front matter {key}: {value!r} is not known to say whether a page is published, so that it is read; "
                "write draft: true to keep it out"
            )
    if not held:
        return "", tuple(notes)
    return (
        f"{', '.join(held)} says that it is not published; write {', '.join(held.values())} to have it read",
        (),
    )


def _is_date(value: object) -> bool:
    try:
        return isinstance(value, date) or bool(datetime.fromisoformat(str(value).strip()))
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class _Block:
    """What stands between two marks at the beginning of a text."""

    language: str
    content: str
    rest: str
    closed: bool
    exact: bool
    """The mark has the length that tools ask for; a longer one may be a line across the page."""
    sure: bool
    """No prose is written like this."""


def _block(text: str) -> _Block | None:
    """Return what the first line and the next mark like it enclose; None where the first line is no mark."""
    first, _, rest = text.partition("\n")
    first = first.rstrip()
    mark = first[:3]
    if first == "<!--":
        language, closing, exact, sure = "fields", ("-->",), True, False
    elif mark in ("---", "+++", ";;;"):
        bare = first.lstrip(mark[0])
        spelled = bare.partition("#")[0].strip().casefold()
        language = _LANGUAGES.get(spelled or mark[0], spelled)
        closing = (first.removesuffix(bare), *(("...",) if mark == "---" else ()))
        exact = len(first) - len(bare) == len(mark)
        # A rule may begin a text; the other marks, and a language behind one, do not.
        sure = exact and (
            mark != "---" or language in ("toml", "json") or bool(spelled and language == "yaml")
        )
    else:
        return None
    lines = rest.split("\n")
    at = next((at for at, line in enumerate(lines) if line.rstrip() in closing), None)
    if at is None:
        return _Block(language, rest, "", closed=False, exact=exact, sure=sure)
    content = "".join(f"{line}\n" for line in lines[:at])
    return _Block(language, content, "\n".join(lines[at + 1 :]), closed=True, exact=exact, sure=sure)


def _keys(content: str) -> frozenset[str]:
    """Return the normal keys of the first lines, up to a blank one; an empty key for an object or a table."""
    keys: set[str] = set()
    for line in content.split("\n"):
        if found := _LINE.match(line):
            keys.add(normal_key(found[2] or ""))
        elif line[:1] not in _WITHIN or (keys and not line.strip()):
            break
    return frozenset(keys)


def _load(language: str, content: str) -> Mapping[str, object] | None:
    """Return the keys of a block, None where it holds none; raises ValueError whose text stands behind "malformed"."""
    match language:
        case "yaml":
            try:
                # BaseLoader keeps scalars as written: a version 1.10 stays "1.10" and a country NO stays "NO".
                data = yaml.BaseLoader(content).get_single_data()
            except yaml.YAMLError as error:
                mark = getattr(error, "problem_mark", None)
                problem = getattr(error, "problem", None) or type(error).__name__
                raise ValueError(f" at line {mark.line + 2 if mark else 1} ({problem})") from error
            if isinstance(data, str):
                # TOML between marks of YAML is one long text to it.
                with suppress(tomllib.TOMLDecodeError):
                    return tomllib.loads(content, parse_float=str) or None
        case "toml":
            try:
                return tomllib.loads(content, parse_float=str)
            except tomllib.TOMLDecodeError as error:
                raise ValueError(f" ({error})") from error
        case "json":
            try:
                data = json.loads(content, parse_float=str, parse_int=str)
            except json.JSONDecodeError as error:
                raise ValueError(f" at line {error.lineno + 1} ({error.msg})") from error
        case "fields":
            return _fields(content)
        case _:
            raise ValueError(f" ({language!r} is not read; write YAML between two lines of ---)")
    return data if isinstance(data, dict) else None


def _object(text: str, name: str, is_known: IsKey) -> tuple[Mapping[str, object], str]:
    """Read a JSON object that a text begins with; one without a key that a tool knows is text."""
    try:
        data, end = json.JSONDecoder(parse_float=str, parse_int=str).raw_decode(text)
    except (ValueError, RecursionError) as error:
        spelled = _JSON_KEY.findall(text[:_BEGINNING])
        if any(map(is_known, {*map(normal_key, spelled), *_keys(text.partition("\n")[2])})):
            raise DocumentWithheld(
                f"{name!r}: front matter is malformed (it begins with an object that is no JSON); mend it or remove it"
            ) from error
        return {}, text
    meta = _normal(data)
    known = any(is_known(key) or key in vocabulary().others for key in meta)
    return (meta, text[end:]) if known and text[end:].lstrip(" \t")[:1] in ("", "\n") else ({}, text)


def _bare(text: str) -> tuple[Mapping[str, object], str]:
    """Read lines like `title: …` up to the first blank line, where they name the page or keep it from somebody."""
    block, _, rest = text.partition("\n\n")
    meta = _normal(_fields(block) or {})
    telling = meta.keys() & {"title", "readers", "reader"} or publication(meta, "")[0]
    return (meta, rest) if telling else ({}, text)


def _fields(content: str) -> Mapping[str, object] | None:
    """Return lines like `title: …` by their keys, those that are indented as more of the line before; None for others."""
    found: dict[str, str] = {}
    for line in filter(str.strip, content.split("\n")):
        of = _LINE.match(line)
        if line[0] in " \t" and found:
            found[list(found)[-1]] += f" {line.strip()}"
        elif of and of[2] and ":" in line:
            found[of[2]] = of[3].strip()
        else:
            return None
    return found or None


def _normal(data: Mapping[str, object]) -> dict[str, object]:
    return {normal_key(str(key)): _written(value) for key, value in data.items()}


def _written(value: object) -> object:
    """Return a value with its scalars as a person writes them: TOML and JSON have numbers and truth of their own."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float() | time():
            return str(value)
        case list():
            return [_written(item) for item in value]
        case dict():
            return {key: _written(item) for key, item in value.items()}
    return value

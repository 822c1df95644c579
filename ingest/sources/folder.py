"""The Source that reads folders and single files of Markdown, text and HTML."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from types import MappingProxyType
from urllib.parse import quote

from ingest.config import SourceSettings
from ingest.errors import SourceError, UnreadableDocument
from ingest.parse import PARSER_VERSION, decode, first_match
from ingest.sources import Change, Changed, Complete, Failed, Unchanged

MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".md": "text/markdown",
        ".markdown": "text/markdown",
        ".txt": "text/plain",
        ".html": "text/html",
        ".htm": "text/html",
    }
)
_ASSETS = frozenset(
    {".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".ico", ".css", ".js", ".woff", ".woff2", ".ttf"}
)
"""What documents are dressed with; nobody misses it in an index, so it is not reported."""
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters and what turns the direction of writing: a name may hold them, and no line of ours."""
_NO_FILE = "no file but a pipe, a socket or a device, which is never opened; remove it"


@dataclass(slots=True)
class _Listing:
    """What a walk found: documents by path inside the source, and what could not be listed."""

    files: dict[str, Path] = field(default_factory=dict)
    unsupported: Counter[str] = field(default_factory=Counter)
    failed: dict[str, str] = field(default_factory=dict)
    whole: bool = True
    seen: set[Path] = field(default_factory=set)
    """Real paths, so that neither a link loop nor a second way to a file lists it twice."""


class FolderSource:
    """Documents in folders on this machine.

    A document's path inside the source is relative to its folder; with several `paths` the folder's own name
    comes first, so that two folders may hold files of one name and a new file never renames another.
    """

    def __init__(self, settings: SourceSettings, name: str = "docs") -> None:
        self._settings = settings
        self._name = name
        # With several paths the folder's name stands in the path already.
        self._folder = settings.paths[0].name if len(settings.paths) == 1 else ""

    @property
    def name(self) -> str:
        """Prefix of every uri of this source."""
        return self._name

    def changes(self, known: Mapping[str, str]) -> Iterator[Change]:
        """Yield what changed against `known`, in the order of the paths.

        Raises SourceError when a path is missing, or there is none, before anything is yielded: a folder that is not
        mounted must not empty the index. A sub-folder that cannot be listed is `Failed`, and then there is no
        `Complete`.
        """
        listing = self._list()
        for path, reason in sorted(listing.failed.items()):
            yield Failed(self._uri(path), reason)
        for suffix, count in sorted(listing.unsupported.items()):
            yield Failed(
                self._uri(f"*{suffix}"),
                f"unsupported type {printable(suffix) or '(no suffix)'} (only Markdown, text and HTML): "
                f"{count} {'file' if count == 1 else 'files'}",
            )
        for path, file in sorted(listing.files.items()):
            yield self._read(path, file, known)
        if listing.whole:
            yield Complete()

    def _list(self) -> _Listing:
        if not self._settings.paths:
            raise SourceError("no folder is named; name one")
        roots: dict[Path, Path] = {}
        for path in self._settings.paths:
            try:
                roots.setdefault(path.expanduser().resolve(strict=True), path.expanduser().absolute())
            except (OSError, RuntimeError) as error:
                raise SourceError(
                    f"{str(path)!r} cannot be opened ({error}); mount it, or take it out of the paths"
                ) from error
        listing = _Listing()
        for root, label in zip(roots, _labels(list(roots.values())), strict=True):
            if root.is_dir():
                _walk(root, "" if len(roots) == 1 else f"{label}/", listing)
            elif root.is_file():
                _add(label, root, root, listing)
            else:
                listing.failed[label] = _NO_FILE
        return listing

    def _read(self, path: str, file: Path, known: Mapping[str, str]) -> Change:
        uri = self._uri(path)
        most = self._settings.max_bytes
        try:
            size = file.stat().st_size
            if size > most:
                return Failed(
                    uri, f"{size} bytes are more than max_bytes {most}; split the file or raise max_bytes"
                )
            with file.open("rb") as stream:
                content = stream.read(most + 1)
            if len(content) > most:
                return Failed(uri, f"it grew beyond max_bytes {most} while it was read")
            if not decode(content, path).strip():
                return Failed(uri, "empty; write some text or remove the file")
        except OSError as error:
            return Failed(uri, f"cannot be read: {error.strerror}")
        except UnreadableDocument as error:
            return Failed(uri, str(error))
        link = self._link(path, file)
        revision = self._revision(path, link, content)
        if known.get(uri) == revision:
            return Unchanged(uri)
        return Changed(uri, revision, content, MEDIA_TYPES[file.suffix.lower()], link, path, self._folder)

    def _uri(self, path: str) -> str:
        return f"{self._name}:{printable(path)}"

    def _link(self, path: str, file: Path) -> str:
        prefix = self._settings.link
        if not prefix:
            return file.as_uri()
        return f"{prefix if prefix.endswith(('/', '=', '#')) else f'{prefix}/'}{quote(path)}"

    def _revision(self, path: str, link: str, content: bytes) -> str:
        """Return a hash of the content and of everything in the settings that changes this document."""
        applied = [
            PARSER_VERSION,
            link,
            first_match(path, self._settings.readers, self._folder),
            first_match(path, self._settings.authority, self._folder),
        ]
        settings = hashlib.sha256(json.dumps(applied).encode()).hexdigest()[:16]
        return f"{hashlib.sha256(content).hexdigest()}-{settings}"


def printable(path: str) -> str:
    """Return the path with the bytes that are not UTF-8, and what would not stay on its line, written out."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), _decoded(path))


def _decoded(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()


def _labels(roots: Sequence[Path]) -> list[str]:
    """Return the shortest last parts of the paths that tell them apart."""
    parts = [root.parts for root in roots]
    for length in range(1, max(map(len, parts), default=1) + 1):
        labels = [PurePath(*part[-length:]).as_posix().lstrip("/") for part in parts]
        if len(set(labels)) == len(labels):
            return labels
    return [root.as_posix().lstrip("/") for root in roots]


def _walk(root: Path, prefix: str, listing: _Listing) -> None:
    """List a folder: what is really there first, then what links inside it add."""
    pending = [(root, prefix)]
    while pending:
        links: list[tuple[Path, str]] = []
        while pending:
            _scan(*pending.pop(), pending, links, listing)
        for link, path in sorted(links):
            try:
                target = link.resolve(strict=True)
            except (OSError, RuntimeError):
                if link.suffix.lower() in MEDIA_TYPES:
                    listing.failed[path] = "broken link; mend or remove it"
                continue
            if not target.is_relative_to(root):
                listing.failed[path] = (
                    f"links to {str(target)!r} outside its folder; copy it or add it to the paths"
                )
            elif target.is_dir():
                pending.append((target, f"{path}/"))
            elif target.is_file():
                _add(path, target, link, listing)
            else:
                listing.failed[path] = _NO_FILE


def _scan(
    folder: Path,
    prefix: str,
    pending: list[tuple[Path, str]],
    links: list[tuple[Path, str]],
    listing: _Listing,
) -> None:
    if folder in listing.seen:
        return
    listing.seen.add(folder)
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        listing.failed[prefix or "."] = f"folder cannot be listed: {error.strerror}; nothing will be deleted"
        listing.whole = False
        return
    for entry in found:
        path = f"{prefix}{entry.name}"
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            links.append((Path(entry.path), path))
        elif entry.is_dir():
            pending.append((Path(entry.path), f"{path}/"))
        elif entry.is_file():
            _add(path, Path(entry.path), Path(entry.path), listing)
        else:
            listing.failed[path] = _NO_FILE


def _add(path: str, real: Path, file: Path, listing: _Listing) -> None:
    """List one file under its path inside the source, unless it is listed already."""
    suffix = file.suffix.lower()
    if real in listing.seen or suffix in _ASSETS:
        return
    listing.seen.add(real)
    if suffix not in MEDIA_TYPES:
        listing.unsupported[suffix] += 1
    elif _decoded(path) != path:
        listing.failed[path] = "its name is not UTF-8; rename it"
    else:
        listing.files[path] = file

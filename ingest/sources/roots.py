"""The folders that are indexed: remembered in the data folder, each with the name that its documents carry."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.errors import ConfigError

FIRST = "docs"
"""Name of the first folder; further ones carry their own name."""
_TAKEN = frozenset({"ticket", "tickets", "computed"})
"""Names that citations use for something else."""


@dataclass(frozen=True, slots=True)
class Root:
    """One indexed folder or file; its documents are `name:path inside it`."""

    name: str
    path: Path
    """Absolute, with its links as they were written, so that a link that is moved is followed."""
    by_hand: bool
    """Named on the command line, not by the settings."""


def read(file: Path) -> tuple[Root, ...]:
    """Return the folders that were remembered; raises ConfigError where the file cannot be read."""
    if not file.exists():
        return ()
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return tuple(Root(str(one["name"]), Path(one["path"]), bool(one["by_hand"])) for one in kept)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"the list of indexed folders {str(file)!r} cannot be read ({error}); "
            f"remove it and run `twohop index PATH…` with every folder"
        ) from error


def write(file: Path, roots: Iterable[Root]) -> None:
    """Remember the folders, all or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = [{"name": root.name, "path": str(root.path), "by_hand": root.by_hand} for root in roots]
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    new.replace(file)


def merged(known: Sequence[Root], configured: Sequence[Path], named: Sequence[Path]) -> tuple[Root, ...]:
    """Return the folders to index: what the settings name, what was named by hand before, and what is named now.

    A folder that is known keeps its name. One that lies inside another is no folder of its own. What the settings named
    before is left out when they name something else now; settings that name nothing take nothing away.
    """
    places = [(_absolute(path), False) for path in configured]
    places += [(root.path, root.by_hand) for root in known if root.by_hand or not configured]
    places += [(_absolute(path), True) for path in named]
    distinct: dict[Path, tuple[Path, bool]] = {}
    for path, by_hand in places:
        distinct.setdefault(path.resolve(), (path, by_hand))
    names = {root.path.resolve(): root.name for root in known}
    kept = {
        real: place
        for real, place in distinct.items()
        if not any(_covers(other, real) for other in distinct if other != real)
    }
    taken = {names[real] for real in kept if real in names} | _TAKEN
    found = []
    for real, (path, by_hand) in kept.items():
        name = names.get(real) or _free(path, taken)
        taken.add(name)
        found.append(Root(name, path, by_hand))
    return tuple(found)


def covering(roots: Sequence[Root], paths: Sequence[Path]) -> tuple[Root, ...]:
    """Return the folders that hold these paths; all of them without paths."""
    wanted = [_absolute(path).resolve() for path in paths]
    held = [(root, root.path.resolve()) for root in roots]
    return tuple(
        root
        for root, real in held
        if not wanted or any(real == path or _covers(real, path) for path in wanted)
    )


def find(roots: Sequence[Root], path: Path) -> Root:
    """Return the folder of this path, or of this name; raises ConfigError naming those that are indexed."""
    wanted = _absolute(path).resolve()
    for root in sorted(roots, key=lambda root: root.path.resolve() != wanted):
        if root.path.resolve() == wanted or root.name == str(path):
            return root
    indexed = ", ".join(repr(str(root.path)) for root in roots) or "none"
    raise ConfigError(f"{str(path)!r} is no indexed folder; these are: {indexed}")


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _covers(folder: Path, path: Path) -> bool:
    """Tell whether listing the folder lists the path too; what is hidden is not listed."""
    if folder == path or not path.is_relative_to(folder):
        return False
    return not any(part.startswith(".") for part in path.relative_to(folder).parts)


def _free(path: Path, taken: Iterable[str]) -> str:
    own = re.sub(r"[^\w.-]+", "-", path.stem if path.suffix and path.is_file() else path.name).strip("-.")
    name, number = FIRST, 1
    while name in taken:
        name = (own or "folder") + (f"-{number}" if number > 1 else "")
        number += 1
    return name

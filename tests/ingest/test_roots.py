"""The folders that belong to an index: their names stay, and nothing leaves by the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.errors import ConfigError
from ingest.sources import roots
from ingest.sources.roots import Root, merged


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a/faq", "b/faq", "tickets", "Guide & tips"):
        Path(folder).mkdir(parents=True)


def names(found: tuple[Root, ...]) -> dict[str, str]:
    return {root.name: root.path.relative_to(Path.cwd()).as_posix() for root in found}


def test_the_first_is_docs_and_further_ones_carry_a_name_of_their_own() -> None:
    found = merged((), [], [Path("a/faq"), Path("b/faq"), Path("tickets"), Path("Guide & tips")])
    assert names(found) == {
        "docs": "a/faq",
        "faq": "b/faq",
        "tickets-2": "tickets",
        "Guide-tips": "Guide & tips",
    }


def test_a_name_stays_whatever_comes_before_it() -> None:
    first = merged((), [], [Path("a/faq")])
    both = merged(first, [Path("b/faq")], [])
    assert names(both) == {"docs": "a/faq", "faq": "b/faq"}
    assert names(merged(both, [Path("a/faq")], [])) == {"docs": "a/faq"}, "the settings dropped b"
    assert names(merged(both, [], [])) == names(both)


def test_a_folder_that_moved_in_the_settings_keeps_the_name() -> None:
    before = merged((), [Path("a/faq")], [])
    assert names(merged(before, [Path("b/faq")], [])) == {"docs": "b/faq"}


def test_one_folder_named_twice_or_within_another_is_one() -> None:
    Path("link").symlink_to("a")
    assert names(merged((), [Path("a")], [Path("link"), Path("a/faq"), Path("link/faq")])) == {"docs": "a"}


def test_they_are_remembered_and_a_damaged_list_is_named(tmp_path: Path) -> None:
    file = tmp_path / "data" / "folders.json"
    assert roots.read(file) == ()
    found = merged((), [Path("a/faq")], [Path("b/faq")])
    roots.write(file, found)
    assert roots.read(file) == found
    assert [path.name for path in file.parent.iterdir()] == ["folders.json"]
    file.write_text("[{}]", "utf-8")
    with pytest.raises(ConfigError, match=r"folders\.json.*twohop index PATH"):
        roots.read(file)


def test_a_folder_is_found_by_its_path_before_its_name() -> None:
    found = merged((), [], [Path("a/faq"), Path("b/faq")])
    assert roots.find(found, Path("faq")).path == Path("b/faq").absolute()
    assert roots.find(found, Path("a/faq")).name == "docs"

"""The folder source: what it lists, what it refuses, and when it says that the listing is whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from ingest.config import SourceSettings
from ingest.errors import SourceError
from ingest.sources import Change, Changed, Complete, Failed, Source, Unchanged
from ingest.sources.folder import FolderSource


def changes(*paths: Path, known: Mapping[str, str] | None = None, **settings: object) -> list[Change]:
    source: Source = FolderSource(SourceSettings.model_validate({"paths": paths, **settings}))
    return list(source.changes(known or {}))


def changed(found: list[Change]) -> dict[str, Changed]:
    return {change.uri: change for change in found if isinstance(change, Changed)}


def failed(found: list[Change]) -> dict[str, str]:
    return {change.uri: change.reason for change in found if isinstance(change, Failed)}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "terms").mkdir(parents=True)
    (folder / "terms" / "team plan.md").write_text("# Team plan\n\n30 days.")
    (folder / "faq.HTML").write_text("<p>14 days</p>")
    (folder / "notes.txt").write_text("plain")
    return folder


def test_lists_what_it_supports_in_a_fixed_order(docs: Path) -> None:
    (docs / ".hidden.md").write_text("x")
    (docs / ".git").mkdir()
    (docs / ".git" / "a.md").write_text("x")
    (docs / "logo.png").write_bytes(b"\x89PNG\x00")
    found = changes(docs)
    assert [(c.uri, c.media_type, c.path) for c in found if isinstance(c, Changed)] == [
        ("docs:faq.HTML", "text/html", "faq.HTML"),
        ("docs:notes.txt", "text/plain", "notes.txt"),
        ("docs:terms/team plan.md", "text/markdown", "terms/team plan.md"),
    ]
    assert found[3:] == [Complete()]


def test_a_known_revision_is_unchanged(docs: Path) -> None:
    known = {uri: change.revision for uri, change in changed(changes(docs)).items()}
    (docs / "notes.txt").write_text("other")
    found = changes(docs, known=known)
    assert set(changed(found)) == {"docs:notes.txt"}
    assert Unchanged("docs:faq.HTML") in found


def test_settings_that_change_a_document_change_its_revision(docs: Path) -> None:
    known = {uri: change.revision for uri, change in changed(changes(docs)).items()}
    assert set(changed(changes(docs, known=known, readers={"terms/*": ["legal"]}))) == {
        "docs:terms/team plan.md"
    }
    assert set(changed(changes(docs, known=known, authority={"*.txt": "chat"}))) == {"docs:notes.txt"}
    assert len(changed(changes(docs, known=known, link="https://help.example.com"))) == 3
    assert not changed(changes(docs, known=known, max_bytes=999))


def test_links(docs: Path) -> None:
    linked = changed(changes(docs, link="https://help.example.com/"))
    assert linked["docs:terms/team plan.md"].link == "https://help.example.com/terms/team%20plan.md"
    own = changed(changes(docs))["docs:terms/team plan.md"].link
    assert own == (docs / "terms" / "team plan.md").as_uri()


def test_several_paths_carry_their_folders_name(docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "legal"
    other.mkdir()
    (other / "notes.txt").write_text("legal notes")
    single = tmp_path / "price.md"
    single.write_text("1 EUR")
    assert set(changed(changes(docs, other, single, docs))) == {
        "docs:docs/faq.HTML", "docs:docs/notes.txt", "docs:docs/terms/team plan.md",
        "docs:legal/notes.txt", "docs:price.md",
    }  # fmt: skip
    (tmp_path / "b" / "docs").mkdir(parents=True)
    (tmp_path / "b" / "docs" / "notes.txt").write_text("b")
    assert "docs:b/docs/notes.txt" in changed(changes(docs, tmp_path / "b" / "docs"))


def test_a_single_file(docs: Path) -> None:
    assert set(changed(changes(docs / "notes.txt"))) == {"docs:notes.txt"}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.md", b"", "empty"),
        ("a.md", b" \r\n\t ", "empty"),
        ("a.md", b"x" * 101, "101 bytes are more than max_bytes 100"),
        ("a.md", b"text\x00text", "binary"),
        ("a.md", "Gebühr".encode("latin-1"), "not UTF-8"),
        ("a.md", b"\xff\xfea", "not UTF-16"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_goes_on(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "b.md").write_text("fine")
    found = changes(tmp_path, max_bytes=100)
    assert reason in failed(found)[f"docs:{name}"]
    assert set(changed(found)) == {"docs:b.md"}
    assert found[-1] == Complete()


def test_byte_order_marks_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("Gebühr".encode("utf-8-sig"))
    (tmp_path / "b.md").write_bytes("Gebühr".encode("utf-16"))
    assert len(changed(changes(tmp_path))) == 2


def test_unsupported_types_are_counted_once_a_type(docs: Path) -> None:
    for name in ("a.pdf", "b.PDF", "c.docx"):
        (docs / name).write_bytes(b"%PDF")
    assert failed(changes(docs)) == {
        "docs:*.pdf": "unsupported type .pdf (only Markdown, text and HTML): 2 files",
        "docs:*.docx": "unsupported type .docx (only Markdown, text and HTML): 1 file",
    }


def test_missing_folder_raises_before_anything_is_said(docs: Path, tmp_path: Path) -> None:
    source = FolderSource(SourceSettings(paths=(docs, tmp_path / "gone")))
    with pytest.raises(SourceError, match="gone"):
        next(source.changes({}))


def test_links_stay_inside_and_loops_end(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (docs / "out.md").symlink_to(tmp_path / "secret.md")
    (docs / "up").symlink_to(tmp_path)
    (docs / "terms" / "loop").symlink_to(docs)
    (docs / "again.txt").symlink_to(docs / "notes.txt")
    (docs / "broken.md").symlink_to(docs / "nowhere")
    found = changes(docs)
    assert set(changed(found)) == {"docs:faq.HTML", "docs:notes.txt", "docs:terms/team plan.md"}
    assert set(failed(found)) == {"docs:out.md", "docs:up", "docs:broken.md"}
    assert "outside its folder" in failed(found)["docs:out.md"]


def test_files_mounted_through_hidden_links_are_read(tmp_path: Path) -> None:
    (tmp_path / "..2025").mkdir()
    (tmp_path / "..2025" / "faq.md").write_text("mounted")
    (tmp_path / "..data").symlink_to("..2025")
    (tmp_path / "faq.md").symlink_to("..data/faq.md")
    assert set(changed(changes(tmp_path))) == {"docs:faq.md"}


def test_a_pipe_does_not_hang_and_is_named(docs: Path) -> None:
    os.mkfifo(docs / "pipe.md")
    (docs / "link.md").symlink_to("pipe.md")
    assert set(failed(changes(docs))) == {"docs:pipe.md", "docs:link.md"}
    assert "a pipe, a socket or a device" in failed(changes(docs))["docs:pipe.md"]
    assert set(failed(changes(docs / "pipe.md"))) == {"docs:pipe.md"}


def test_what_a_name_hides_is_written_out(tmp_path: Path) -> None:
    for name in ("a\nb\x1b.md", "right\u202eleft.md", "café 1.md"):
        (tmp_path / name).write_text("Text.")
    assert set(changed(changes(tmp_path))) == {
        "docs:a\\nb\\x1b.md",
        "docs:right\\u202eleft.md",
        "docs:café 1.md",
    }


def test_name_that_is_not_utf8_is_reported(tmp_path: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_text("x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    (uri,) = failed(changes(tmp_path))
    assert uri.encode() == b"docs:caf\\udce9.md"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file_fails_alone_and_unreadable_folder_leaves_the_listing_open(docs: Path) -> None:
    (docs / "notes.txt").chmod(0)
    assert "Permission denied" in failed(changes(docs))["docs:notes.txt"]
    (docs / "terms").chmod(0)
    try:
        found = changes(docs)
    finally:
        (docs / "terms").chmod(0o755)
    assert "cannot be listed" in failed(found)["docs:terms/"]
    assert Complete() not in found


def test_folder_that_cannot_be_listed_leaves_the_listing_open(docs: Path) -> None:
    folder = os.open(docs, os.O_RDONLY)
    for _ in range(20):  # deeper than a path may be long
        os.mkdir("d" * 250, dir_fd=folder)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    found = changes(docs)
    (reason,) = failed(found).values()
    assert "cannot be listed: File name too long" in reason
    assert len(changed(found)) == 3
    assert Complete() not in found

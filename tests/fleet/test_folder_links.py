"""The further paths of a table, through links to folders."""

from __future__ import annotations

from deltaproto.fleet.discovered import FolderLinks


def made(*links: tuple[str, str]) -> FolderLinks:
    found = FolderLinks()
    for link, target in links:
        found.add(link, target)
    return found


def test_a_link_to_the_table_or_a_folder_above_it() -> None:
    links = made(("/l/one", "/l/a/t"), ("/l/all", "/l/a"), ("/l/other", "/l/b"))
    assert links.other_paths("/l/a/t") == ["/l/all/t", "/l/one"]
    assert links.other_paths("/l/a") == ["/l/all"]
    assert links.other_paths("/l/a2/t") == []


def test_a_link_in_a_linked_folder() -> None:
    links = made(("/l/a/x", "/elsewhere"), ("/l/all", "/l/a"))
    assert links.other_paths("/elsewhere/t") == ["/l/a/x/t", "/l/all/x/t"]


def test_paths_that_never_end_are_left_out() -> None:
    assert not made(("/l/a/loop", "/l"), ("/l/a/top", "/"))
    around = made(("/a/to_b", "/b"), ("/b/to_a", "/a"))
    assert 0 < len(around.other_paths("/a/t")) <= 20

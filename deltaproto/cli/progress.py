"""Warnings on standard error, and progress if it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

_MIN_ITEMS_SHOWN = 20


def warn(text: str) -> None:
    """Print a warning to standard error."""
    from deltaproto.render.terminal import single_line

    print(f"warning: {single_line(text)}", file=sys.stderr)


def track_items(items: Sequence[str], *, show: bool) -> Iterator[str]:
    """Yield `items`, with a progress bar if there are many and standard error is a terminal."""
    if not show or len(items) < _MIN_ITEMS_SHOWN or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, "inspecting", console=Console(stderr=True), transient=True)


@contextmanager
def show_waiting(message: str, *, show: bool) -> Iterator[None]:
    """Show `message` while the block runs, if standard error is a terminal."""
    if not show or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    from deltaproto.render.terminal import single_line

    with Console(stderr=True).status(Text(single_line(message))):
        yield


@contextmanager
def count_steps(what: str, *, first: str = "", show: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function to call for each item; it shows `first`, then the count if it is high."""
    if not show or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    count = 0
    with console.status(first) as status:

        def step(_: int) -> None:
            nonlocal count
            count += 1
            if count % _MIN_ITEMS_SHOWN == 0:
                status.update(f"{count:,} {what}")

        yield step


@contextmanager
def show_rate(
    what: str, *, total: int | None = None, show: bool
) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the count so far; shows count, rate and time.

    `total` is the expected count. If set, a bar and the remaining time are shown.
    """
    if not show or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[str | ProgressColumn] = [
        SpinnerColumn(),
        TextColumn("{task.completed:,} {task.description}"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
    ]
    if total:
        columns += [BarColumn(), TextColumn("left"), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total, rate="")

        def step(count: int) -> None:
            speed = progress.tasks[task].speed
            rate = "" if speed is None else f"{speed:,.0f} per second"
            # The count may exceed the expected total.
            most = max(total, count) if total else None
            progress.update(task, completed=count, total=most, rate=rate)

        yield step

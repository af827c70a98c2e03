"""Warnings on standard error, and progress if it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol, TypeVar

_Item = TypeVar("_Item")
_MIN_ITEMS_SHOWN = 20


class ShowCount(Protocol):
    """Shows a count, and how many are expected."""

    def __call__(self, count: int, expected: Callable[[], int | None] = ..., /) -> None:
        """Show that there are `count` so far."""


def warn(text: str) -> None:
    """Print a warning to standard error."""
    from deltaproto.render.terminal import single_line

    print(f"warning: {single_line(text)}", file=sys.stderr)


def track_items(items: Iterable[_Item], total: int, *, show: bool) -> Iterator[_Item]:
    """Yield `items`, with a progress bar if there are many and standard error is a terminal."""
    if not show or total < _MIN_ITEMS_SHOWN or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(items, "inspecting", total, console=console, transient=True)


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
def show_rate(what: str, *, show: bool, at_once: bool = True) -> Iterator[ShowCount]:
    """Yield a function to call with the count so far; shows count, rate and time.

    Its second argument returns the expected count, or None. If there is one, a bar and the
    remaining time are shown.

    Args:
        at_once: False if nothing is shown before the first count, since the thread that draws
            would keep the caller from forking processes.
    """
    if not show or not sys.stderr.isatty():
        yield lambda *_: None
        return
    with ExitStack() as stack:
        display: _RateDisplay | None = _RateDisplay(what, None, stack) if at_once else None

        def step(count: int, expected: Callable[[], int | None] = lambda: None) -> None:
            nonlocal display
            if display is None and count:
                display = _RateDisplay(what, expected(), stack)
            if display is not None:
                display.update(count)

        yield step


class _RateDisplay:
    """A line with the count, the rate and the time; it ends with `stack`."""

    def __init__(self, what: str, total: int | None, stack: ExitStack) -> None:
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
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._progress, self._total = stack.enter_context(progress), total
        self._task = progress.add_task(what, total=total, rate="")

    def update(self, count: int) -> None:
        """Show the count so far, which may exceed the expected total."""
        speed = self._progress.tasks[self._task].speed
        rate = "" if speed is None else f"{speed:,.0f} per second"
        most = max(self._total, count) if self._total else None
        self._progress.update(self._task, completed=count, total=most, rate=rate)

"""Who is told while a plan is carried out."""

from __future__ import annotations

from typing import Protocol as Interface

from deltaproto.execution.plan_file import Planned
from deltaproto.execution.result import StepRecord
from deltaproto.planning.plan import Step


class Observer(Interface):
    """Is told of every event; its calls may come from several threads."""

    def began(self, planned: Planned, step: Step) -> None:
        """A step's statement is sent."""
        ...

    def progress(self, planned: Planned, step: Step, done: int, known: int) -> None:
        """Of the engine's tasks for the step, so many are done."""
        ...

    def retries(self, planned: Planned, step: Step, winner: str, seconds: float) -> None:
        """A concurrent transaction won; the step is tried again after some seconds."""
        ...

    def waits(self, planned: Planned, step: Step, until: float) -> None:
        """The next step comes at `until`, in seconds since the epoch."""
        ...

    def finished(self, planned: Planned, record: StepRecord) -> None:
        """A step is over."""
        ...

    def halts(self) -> None:
        """The run was interrupted: statements that were sent are waited for, no other is sent."""
        ...


class Silent:
    """Tells nobody."""

    def began(self, planned: Planned, step: Step) -> None: ...

    def progress(self, planned: Planned, step: Step, done: int, known: int) -> None: ...

    def retries(self, planned: Planned, step: Step, winner: str, seconds: float) -> None: ...

    def waits(self, planned: Planned, step: Step, until: float) -> None: ...

    def finished(self, planned: Planned, record: StepRecord) -> None: ...

    def halts(self) -> None: ...

"""What is said of the statements that users bring themselves."""

from __future__ import annotations

from deltaproto.planning.ddl.own import Parsed
from deltaproto.planning.plan import Step
from deltaproto.planning.statement import KEEPS_FILES
from deltaproto.tables.sql import name_parts

_SHOWN = 80


def names_it(target: tuple[str, ...], table: str) -> bool:
    """Whether a statement's table can be the one that is planned for, which is written as SQL."""
    planned = name_parts(table)
    if target[0].lower() == "delta" or planned[0].lower() == "delta":
        kinds = {target[0].lower(), planned[0].lower()}
        paths = ([part.rstrip("/") for part in name[1:]] for name in (target, planned))
        return len(kinds) == 1 and next(paths) == next(paths)
    folded = [part.casefold() for part in target]
    return folded == [part.casefold() for part in planned][-len(folded) :]


def is_it(target: tuple[str, ...], table: str) -> bool:
    """Whether a statement's table is this one whatever the session's current schema is."""
    return len(target) == len(name_parts(table)) and names_it(target, table)


def short(text: str) -> str:
    """The beginning of a statement, on one line."""
    words = " ".join(text.split())
    return words if len(words) <= _SHOWN else words[: _SHOWN - 1] + "…"


def what_it_does(parsed: Parsed, step: Step) -> str:
    """What a statement of the user's own does."""
    before, after = step.protocol_before.supported, step.protocol_after.supported
    gained, lost = sorted(after - before), sorted(before - after)
    said = [f"{', '.join(gained)} joins the protocol"] if gained else []
    said += [f"{', '.join(lost)} leaves the protocol"] if lost else []
    if parsed.operation is not None and not gained and not lost:
        said.append(f"the protocol stays; for other writers it is {parsed.operation}")
    kept = "; only OPTIMIZE FULL rewrites existing files" if KEEPS_FILES in step.warnings else ""
    return f"line {parsed.line}: {' and '.join(said) or 'the protocol stays'}{kept}"

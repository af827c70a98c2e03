"""Numbers with their nouns, and lists and texts that are cut short."""

from collections.abc import Sequence


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 table`, `2,000 tables`.

    Args:
        plural: the plural, unless it is the noun with an `s`.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def with_article(noun: str) -> str:
    """Return a noun with `a` or `an`, by its first letter."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def all_names(names: Sequence[str]) -> str:
    """Join names: `a`, `a and b`, `a, b and c`."""
    return _join_names(names, " and ")


def any_name(names: Sequence[str]) -> str:
    """Join alternatives: `a`, `a or b`, `a, b or c`."""
    return _join_names(names, " or ")


def _join_names(names: Sequence[str], last: str) -> str:
    return last.join([", ".join(names[:-1])] * (len(names) > 1) + [*names[-1:]])


def first_names(names: Sequence[str], most: int) -> str:
    """Join the first names with commas, followed by the number of those that are left out."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def tables_such_as(count: int, first: str) -> str:
    """Return the name of the only table, or the number of tables and the first name."""
    return first if count == 1 else f"{counted(count, 'table')}, such as {first}"


def shorten(text: str, most: int) -> str:
    """Cut a text to `most` characters, the last of which is an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"

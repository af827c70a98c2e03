"""Numbers with their nouns."""


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 table`, `2,000 tables`.

    Args:
        plural: the plural, unless it is the noun with an `s`.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"

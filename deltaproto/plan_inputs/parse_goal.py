"""Parse goals from the command line: feature names, versions and scripts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from deltaproto.errors import UsageError
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.user_statement import ParsedStatement
from deltaproto.planning.enable import FeatureToEnable
from deltaproto.planning.predict.properties import canonical_name
from deltaproto.protocol import feature_catalog


def split_words(texts: Iterable[str]) -> list[str]:
    """Split texts at commas and whitespace."""
    return [word for text in texts for part in text.split(",") if (word := part.strip())]


def parse_feature_names(names: Iterable[str], flag: str) -> tuple[str, ...]:
    """Parse feature names (case-insensitive), with or without commas.

    Unknown names are accepted unchanged, because a log can contain them.

    Args:
        flag: the option name for error messages.

    Raises:
        UsageError: for a name that looks like a typo.
    """
    found: dict[str, None] = {}
    for word in split_words(names):
        record, near = feature_catalog.search_feature(word)
        if record is None and near:
            raise UsageError(f"{flag}: unknown feature {word}", f"did you mean {near[0]}?")
        found.setdefault(word if record is None else record.name)
    return tuple(found)


def parse_features_to_enable(
    texts: Iterable[str], columns: tuple[str, ...], flag: str
) -> tuple[FeatureToEnable, ...]:
    """Parse features to enable, such as `columnMapping=name`, requirements first.

    Args:
        columns: the clustering columns.
        flag: the option name for error messages.

    Raises:
        UsageError: for a name that looks like a typo, or an invalid mode.
    """
    found: dict[str, FeatureToEnable] = {}
    for word in split_words(texts):
        name, equals, mode = word.partition("=")
        (feature,) = parse_feature_names([name], flag) or (name,)
        if equals and (feature != "columnMapping" or mode.lower() not in ("name", "id")):
            hint = f"leave out ={mode}: only columnMapping has modes"
            if feature == "columnMapping":
                hint = "write columnMapping=name or columnMapping=id"
            raise UsageError(f"{flag} {word}: {feature} has no such mode", hint)
        clustered = columns if feature == "clustering" else ()
        wanted = FeatureToEnable(feature, mode.lower() or None, clustered)
        before = found.setdefault(feature, wanted)
        if before.mode is None:
            found[feature] = wanted
        elif wanted.mode not in (None, before.mode):
            modes = f"{before.mode} and {wanted.mode}"
            raise UsageError(f"{flag}: {feature} with the modes {modes}", "keep one of them")
    if columns and "clustering" not in found:
        found["clustering"] = FeatureToEnable("clustering", columns=columns)
    return tuple(sorted(found.values(), key=_requirements_sort_key))


def validate_properties_to_set(properties: Mapping[str, str], flag: str) -> dict[str, str]:
    """Return properties to set, each with one name.

    Args:
        flag: the option name for error messages.

    Raises:
        UsageError: for two spellings of one name, and for spaces around a name.
    """
    names: dict[str, str] = {}
    for key in properties:
        if key != key.strip():
            raise UsageError(f"{flag}: a space around the name {key.strip()}", "write it without")
        other = names.setdefault(canonical_name(key), key)
        if other != key:
            raise UsageError(f"{flag}: {other} and {key} are one property", "keep one of them")
    return dict(properties)


def parse_version_pair(text: str | None) -> tuple[int, int] | None:
    """Parse reader and writer version as `R,W`.

    Raises:
        UsageError: if these are not valid Delta versions.
    """
    if text is None:
        return None
    match = re.fullmatch(r"\s*\(?\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)?\s*", text)
    if match is None:
        raise UsageError(
            f"--protocol {text} is not a pair of versions", "for example --protocol 1,2"
        )
    return validate_version_pair(int(match[1]), int(match[2]))


def validate_version_pair(reader: int, writer: int) -> tuple[int, int]:
    """Check a reader and a writer version.

    Raises:
        UsageError: if these are not valid Delta versions.
    """
    if not (1 <= reader <= 3 and 1 <= writer <= 7):
        raise UsageError(
            f"reader version {reader} and writer version {writer} are not a valid pair",
            "reader versions are 1 to 3, writer versions 1 to 7",
        )
    return reader, writer


def read_script(text: str) -> list[ParsedStatement]:
    """Parse the statements of `text`, which is SQL or the name of an SQL file.

    Raises:
        UsageError: if the file cannot be read, or there is no statement.
    """
    if os.path.isfile(text):
        try:
            with open(text, encoding="utf-8-sig") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"cannot read {text}: {error}", "the file must be SQL in UTF-8"
            ) from None
    elif is_sql_file_name(text):
        raise UsageError(f"cannot read {text}: it does not exist", "pass SQL, or a file of SQL")
    found = parse_script(text)
    if not found:
        raise UsageError("--sql has no statement", "pass SQL, or a file of SQL statements")
    return found


def is_sql_file_name(text: str) -> bool:
    """Return True for a name such as changes.sql, which is not a statement."""
    return text.lower().endswith(".sql") and not any(map(str.isspace, text))


def _requirements_sort_key(wanted: FeatureToEnable) -> tuple[int, str]:
    return len(feature_catalog.with_required_features({wanted.feature})), wanted.feature

"""Options shared by several commands, and conversion of their values."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from deltaproto.cli import completion
from deltaproto.cli.declare import NO_SETTINGS, Option, Panel, option_name, switch
from deltaproto.cli.output import TruncateOnFirstWrite, unwritten_error, write_at_end
from deltaproto.cli.progress import warn
from deltaproto.counts import counted
from deltaproto.errors import UsageError
from deltaproto.input_file import SETTINGS_FILE
from deltaproto.policy.finding import FailOn
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.render.interface import DEFAULT_LIMIT, Format, PageFormat

if TYPE_CHECKING:
    from deltaproto.policy.evaluate import Checker

_NOTICES = 3
_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

FORMAT = Option(("--format",), "Choose the output format.", Format, Format.TEXT, panel=Panel.OUTPUT)
PAGE_FORMAT = FORMAT._replace(type=PageFormat, default=PageFormat.TEXT)
OUTPUT = Option(("--output", "-o"), "Write to this file.", metavar="FILE", panel=Panel.OUTPUT)
FAIL_ON = Option(
    ("--fail-on",),
    "Exit 1 if any finding has this severity or higher.",
    FailOn,
    FailOn.ERROR,
    panel=Panel.OUTPUT,
)
STORAGE_OPTION = Option(
    ("--storage-option",),
    "Set an object store option, named as in deltalake. Repeatable.",
    many=True,
    metavar="K=V",
    panel=Panel.INPUT,
    setting="storage_options",
)
SPARK_REMOTE = Option(
    ("--spark-remote",),
    "Use this Spark Connect server.",
    metavar="sc://HOST",
    panel=Panel.SPARK,
)
SPARK_CONF = Option(
    ("--spark-conf",),
    "Set a Spark property. Repeatable.",
    many=True,
    metavar="K=V",
    panel=Panel.SPARK,
    setting="spark_conf",
)
CONFIG = Option(
    ("--config",),
    f"Read missing options from this file ({NO_SETTINGS}: no file). Default: ./{SETTINGS_FILE}.",
    metavar="FILE",
    panel=Panel.INPUT,
)
POLICY = Option(
    ("--policy",),
    "Evaluate the clients and rules of this policy.",
    metavar="FILE",
    panel=Panel.CLIENTS,
    setting="policy",
)
CLIENT = Option(
    ("--client",),
    "Show the effect on this client (ID@VERSION). Repeatable.",
    many=True,
    metavar="ID@VERSION",
    words=completion.clients,
    panel=Panel.CLIENTS,
)
CLIENT_FILE = Option(
    ("--client-file",),
    "Add the clients of this YAML file. Repeatable.",
    many=True,
    metavar="FILE",
    panel=Panel.CLIENTS,
    old="--catalogue",
)
ALLOW_EMPTY = switch(
    "--allow-empty", help="Succeed even if there are no tables or plans.", panel=Panel.SAFETY
)
DETAILS = switch(
    "--details", help="Show each table or client in full, not in groups.", panel=Panel.OUTPUT
)
LIMIT = Option(
    ("--limit",),
    "Show at most N groups or clients, and N findings, in text; 0 shows all.",
    int,
    DEFAULT_LIMIT,
    metavar="N",
    panel=Panel.OUTPUT,
)
NO_COLOR = switch("--no-color", help="Do not color text.", panel=Panel.OUTPUT)
NO_PROGRESS = switch("--no-progress", help="Do not show progress.", panel=Panel.OUTPUT)
QUIET = switch("--quiet", "-q", help="Print only results and errors.", panel=Panel.OUTPUT)
DEBUG = switch("--debug", help="Show Spark's output and tracebacks.", panel=Panel.OUTPUT)
READING = (
    *(STORAGE_OPTION, CONFIG, SPARK_REMOTE, SPARK_CONF),
    *(NO_COLOR, NO_PROGRESS, QUIET, DEBUG),
)
"""the last options of every command that reads tables"""


def require_limit(limit: int) -> int:
    """Return the value of --limit.

    Raises:
        UsageError: if it is negative.
    """
    if limit < 0:
        raise UsageError(f"--limit {limit} is negative", "use 0 to see everything")
    return limit


def require_partner(values: Mapping[str, Any], flag: str, needed: str) -> None:
    """Refuse an option that has no effect without another one.

    Raises:
        UsageError: when `flag` has a value, and `needed` has none.
    """
    has, helped = (bool(values[option_name(each)]) for each in (flag, needed))
    if has and not helped:
        raise UsageError(f"{flag} needs {needed}", f"pass {needed}, or leave out {flag}")


def parse_pairs(values: Sequence[str], flag: str, *, once: bool = False) -> dict[str, str]:
    """Parse `K=V` options into a mapping; the last value of a key wins.

    Args:
        once: refuse a key with several values.

    Raises:
        UsageError: for an option without a key or without `=`, or one that is not UTF-8.
    """
    mapping: dict[str, str] = {}
    for value in values:
        key, equals, rest = value.partition("=")
        if not key or not equals:
            # The value may be a secret, so it is not repeated.
            raise UsageError(f"{flag} takes K=V", f"for example {flag} key=value")
        try:
            value.encode()
        except UnicodeEncodeError:
            hint = "encode the value in UTF-8"
            raise UsageError(f"{flag} is not valid UTF-8", hint) from None
        if once and mapping.get(key, rest) != rest:
            raise UsageError(f"{flag} has several values for {key}", "keep one of them")
        mapping[key] = rest
    return mapping


def storage_options(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of the object store that were passed to a command.

    Raises:
        UsageError: for a malformed K=V.
    """
    return parse_pairs(values["storage_option"], "--storage-option")


def shows_progress(values: Mapping[str, Any]) -> bool:
    """Return True unless --no-progress or --quiet was given."""
    return not (values["no_progress"] or values["quiet"])


def spark_settings(values: Mapping[str, Any]) -> SparkSettings:
    """Build SparkSettings from a command's options.

    Raises:
        UsageError: for an invalid URL or a malformed K=V.
    """
    if values["spark_remote"]:
        from deltaproto.tables.spark_connect import validate_remote

        validate_remote(values["spark_remote"])
    conf = parse_pairs(values["spark_conf"], "--spark-conf")
    named = (each if isinstance(each, list | tuple) else [each] for each in values.values())
    places = (word for each in named for word in each if isinstance(word, str))
    settings = SparkSettings(values["spark_remote"], conf, show_log=values["debug"])
    settings = settings.reaching(*places)
    storage = storage_options(values)
    if not storage:
        return settings
    from deltaproto.tables.storage.through_spark import hadoop_conf

    return settings._replace(hadoop=hadoop_conf(storage))


def parse_milliseconds(text: str, flag: str, wanted: str, example: str) -> int:
    """Parse a date or time (default zone: UTC) to milliseconds since the epoch.

    `wanted` and `example` describe for the error message what the flag takes.

    Raises:
        UsageError: when `text` is neither.
    """
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UsageError(f"{flag} {text} is not a {wanted}", f"for example {example}") from None


def print_policy_notices(checker: Checker | None, *, in_waves: bool = False) -> None:
    """Print findings about the policy itself, based on the observed tables, to standard error.

    Args:
        in_waves: only the tables of a wave were observed, so a pattern may match others.
    """
    from deltaproto.policy.rules.unmatched_pattern import RULE as UNMATCHED_PATTERN

    found = None if checker is None else checker.check_policy()
    by_rule: dict[str, list[str]] = {}
    for finding in found.findings if found is not None else ():
        if in_waves and finding.rule == UNMATCHED_PATTERN.id:
            continue
        by_rule.setdefault(finding.rule, []).append(finding.message)
    for rule, messages in by_rule.items():
        for message in messages[:_NOTICES]:
            warn(f"{rule}: {message}")
        if more := len(messages[_NOTICES:]):
            warn(f"{rule}: {counted(more, 'more finding')}; `check` lists all")


def did_you_mean(near: Sequence[str], otherwise: str) -> str:
    """Return the hint for an unknown name, or `otherwise` when nothing is similar."""
    return f"did you mean {', '.join(near)}?" if near else otherwise


def require_range(value: int | None, flag: str, most: int, least: int = 1) -> None:
    """Require that a number, if given, is within range.

    Raises:
        UsageError: when it is not from `least` to `most`.
    """
    if value is not None and not least <= value <= most:
        raise UsageError(f"{flag} {value} is out of range", f"give a number from {least} to {most}")


def refuse_overwrite(
    output: str | None, read: Iterable[str | None], flag: str = "--output"
) -> None:
    """Refuse an output path that is also an input.

    Raises:
        UsageError: when the file `output`, given with `flag`, is one of `read`.
    """
    if output is None or not os.path.isfile(output):
        return
    for name in read:
        if name is not None and os.path.isfile(name) and os.path.samefile(name, output):
            raise UsageError(f"{flag} would overwrite {name}", f"choose another {flag}")


def require_writable(output: str | None, flag: str = "--output") -> None:
    """Refuse an output file that cannot be written, before work that would be lost.

    The file stays as it is. Pipes and devices are not opened.

    Raises:
        UsageError: when the file `output`, given with `flag`, cannot be written.
    """
    if output is None or output == "-":
        return
    missing = not os.path.lexists(output)
    if missing or os.path.isfile(output) or os.path.isdir(output):
        _open_output_file(output, flag).close()
        if missing:
            os.unlink(output)


@contextmanager
def open_output(
    output: str | None, *, whole: bool = True, flag: str = "--output"
) -> Iterator[IO[str]]:
    """Open standard output, or the file `output`, which keeps its old content until the end.

    If the block fails or is interrupted, the file stays as it was.

    Args:
        whole: False to write as the text arrives; the old content is kept until the first write.
        flag: the option that names the file.

    Raises:
        UsageError: when the file cannot be written or the disk is full.
    """
    standard = output is None or output == "-"
    if standard and sys.stdout is None:
        raise UsageError("cannot write: standard output is closed", "give --output FILE")
    try:
        if standard:
            yield sys.stdout
            sys.stdout.flush()
        else:
            with _open_output_file(str(output), flag) as file:
                if whole:
                    with write_at_end(file) as text:
                        yield text
                else:
                    yield file
    except OSError as error:
        if error.errno not in _DISK_FULL_ERRORS:
            raise
        raise unwritten_error("standard output" if standard else str(output), error) from None


def _open_output_file(path: str, flag: str) -> TruncateOnFirstWrite:
    if "_delta_log" in os.path.abspath(path).split(os.sep):
        raise UsageError(f"cannot write {path}: it is in a table's log", f"choose another {flag}")
    try:
        return TruncateOnFirstWrite(path)
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", f"choose another {flag}"
        ) from None

"""The rules and their pages in each format."""

from __future__ import annotations

from typing import IO, Any, assert_never

from deltaproto.policy.rule import Rule
from deltaproto.render.interface import Format, json_text


def write_rules(rules: tuple[Rule, ...], format_: Format, file: IO[str], *, color: bool) -> None:
    """Write all rules, one per line."""
    match format_:
        case Format.JSON:
            payload = {"rules": [_fields(rule) for rule in rules]}
            file.write(json_text("explain", payload, line=False))
        case Format.JSONL:
            for rule in rules:
                file.write(json_text("explain", {"rules": [_fields(rule)]}, line=True))
        case Format.MARKDOWN:
            from deltaproto.render.markdown import table

            rows = [(rule.id, rule.name, str(rule.severity), rule.since) for rule in rules]
            file.write(table(("Rule", "Name", "Severity", "Since"), rows) + "\n")
        case Format.TEXT:
            from rich import box
            from rich.table import Table

            from deltaproto.render.console import DataConsole

            grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
            for heading in ("rule", "name", "severity", "since"):
                grid.add_column(heading)
            for rule in rules:
                grid.add_row(rule.id, rule.name, str(rule.severity), rule.since)
            DataConsole(file, color=color).print(grid)
        case _:
            assert_never(format_)


def write_rule(rule: Rule, page: str, format_: Format, file: IO[str], *, color: bool) -> None:
    """Write one rule with its page."""
    title = f"{rule.id} {rule.name} ({rule.severity})"
    match format_:
        case Format.JSON | Format.JSONL:
            payload = {"rules": [{**_fields(rule), "page": page}]}
            file.write(json_text("explain", payload, line=format_ is Format.JSONL))
        case Format.MARKDOWN:
            file.write(f"# {title}\n\n{page}\n")
        case Format.TEXT:
            from rich.text import Text

            from deltaproto.render.console import DataConsole

            console = DataConsole(file, color=color)
            console.print(Text(title, style="bold"), "")
            for line in page.splitlines():
                heading = line.startswith("## ")
                console.print(Text(line.removeprefix("## "), style="bold cyan" if heading else ""))
        case _:
            assert_never(format_)


def _fields(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "severity": str(rule.severity),
        "since": rule.since,
    }

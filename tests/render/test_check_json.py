"""One document for all tables has what each table has alone."""

from __future__ import annotations

import io
import json
from collections import Counter

from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.remedy import Remedy, RemedyCost
from deltaproto.clients.verdicts import ClientVerdict
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.document.errors import Position
from deltaproto.policy.document.merging import Decision
from deltaproto.policy.document.model import Declared
from deltaproto.policy.finding import Severity
from deltaproto.policy.table_check import TableCheck
from deltaproto.render.check_json import CheckDocument, checked_fields, total

NAMES = ("a", "it's \0", "\0deltaproto table\0", "##[error]", 'x", "table": "y')


def test_tables_that_share_their_verdicts_have_their_own_commands() -> None:
    remedy = Remedy("drop-feature", RemedyCost.HISTORY, "drop", command="plan-downgrade {table}")
    verdicts = tuple(
        DeclaredVerdict(
            Declared(
                *("trino@400", "trino", None, "400", (Access.READ,), "nightly", None),
                Position(1, 1),
            ),
            ClientVerdict(
                *("trino", "400", None, Access.READ, Verdict.REFUSED, (), "\0##"), found, None
            ),
        )
        for found in ((remedy,), ())
    )
    decisions = (Decision("isolation", "Serializable", "*", Position(2, 1)),)
    file = io.StringIO()
    document = CheckDocument(file)
    alone = []
    for name in NAMES:
        checked = TableCheck(
            *(name, None, verdicts, (), (), None), complete=True, decisions=decisions
        )
        document.add(checked)
        alone.append(checked_fields(checked))
    document.close(())
    found = json.loads(file.getvalue())
    assert len(found["verdicts"]) == 2 * len(NAMES)
    for member in ("verdicts", "settings", "tables", "usability"):
        assert found[member] == [entry for each in alone for entry in each[member]]


def test_large_numbers_of_the_summary_have_separators() -> None:
    verdicts, findings = Counter({Verdict.OK: 17212}), Counter({Severity.ERROR: 3772})
    assert total(3000, 1200, verdicts, findings) == (
        "3,000 tables, 1,200 unreadable; verdicts: 17,212 ok; "
        "findings: 3,772 error, 0 warning, 0 info"
    )

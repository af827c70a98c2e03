"""What a policy file says, and what it may not say."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.clients.entry import parse_client
from deltaproto.clients.model import Access
from deltaproto.policy.document import Policy, PolicyError, load_policy
from deltaproto.policy.document.model import Consumer, Declared
from deltaproto.policy.finding import Severity
from deltaproto.protocol.isolation import IsolationLevel
from tests.conftest import Ran

TODAY = datetime.date(2026, 11, 21)
RULES = ("DP101", "DP108", "DP109", "DP201", "DP202")
READ_APPEND = (Access.READ, Access.APPEND)

Load = Callable[[str], Policy]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """The policy of a text that follows the line with the version."""

    def loaded(text: str) -> Policy:
        file = tmp_path / "p.yaml"
        file.write_text(f"policy_version: 1\n{text}", encoding="utf-8")
        return load_policy(str(file), rules=RULES, today=TODAY)

    return loaded


FULL = """\
define:
  nightly-loader:
    name: Nightly loader
    versions: dotted
    ranges:
    - from: "1.0"
      read: {legacy: [1, 2], features: [columnMapping]}
      access: [read]
      whole: true
      note: ~
catalogues: [clients/ours.yaml]
clients:
- trino@476
- client: deltalake/pyarrow@1.6.3
  access: [read]
  as: nightly report
- {client: databricks-runtime@14.3 LTS, stream: true, as: loader}
- {client: delta-sharing-spark@4.0, share: true, stream: false}
tables:
  "*":
    max_reader_version: 3
    max_writer_version: 7
    min_reader_version: 1
    min_writer_version: 2
  main.gold.*:
    clients: [bigquery]
    forbid_features: [typeWidening-preview, clustering]
    require_features: [appendOnly]
    isolation: write_serializable
    require_properties:
      delta.appendOnly: true
      delta.checkpointInterval: 10
      delta.logRetentionDuration: interval 30 days
    maintenance_windows:
    - {days: [sun, sat], from: "22:00", to: "02:00", timezone: Europe/Berlin}
    - {days: daily, from: 0:00, to: 24:00}
    severities: {DP101: off}
severities:
  DP101: warning
waivers:
- rule: DP201
  table: gold/**
  feature: deletionVectors
  client: trino@476
  reason: |
    moves to
    a new release
  expires: 2026-11-21
- {rule: DP109, feature: ourOwn, reason: known, expires: "2027-01-01"}
"""


class TestPolicy:
    def test_clients(self, load: Load) -> None:
        clients = load(FULL).clients
        assert clients is not None
        assert [client[:-1] for client in clients] == [
            ("trino@476", "trino", None, "476", READ_APPEND, None, None),
            (
                "deltalake/pyarrow@1.6.3",
                "deltalake",
                "pyarrow",
                "1.6.3",
                (Access.READ,),
                "nightly report",
                None,
            ),
            (
                "databricks-runtime@14.3 LTS",
                "databricks-runtime",
                None,
                "14.3 LTS",
                (Access.STREAM,),
                "loader",
                Consumer.STREAM,
            ),
            (
                "delta-sharing-spark@4.0",
                "delta-sharing-spark",
                None,
                "4.0",
                (Access.READ,),
                None,
                Consumer.SHARE,
            ),
        ]
        assert [tuple(client.position) for client in clients] == [
            (14, 3),
            (15, 3),
            (18, 3),
            (19, 3),
        ]

    def test_tables(self, load: Load) -> None:
        every, gold = load(FULL).tables
        assert (every.pattern, tuple(every.position)) == ("*", (21, 3))
        assert every.settings[1:5] == (3, 7, 1, 2)
        settings = gold.settings
        assert settings.clients == (
            Declared("bigquery", "bigquery", None, None, READ_APPEND, None, None, (27, 15)),
        )
        assert settings.forbid_features == ("typeWidening-preview", "clustering")
        assert settings.require_features == ("appendOnly",)
        assert settings.isolation is IsolationLevel.WRITE_SERIALIZABLE
        assert settings.max_reader_version is None
        assert settings.require_properties == {
            "delta.appendOnly": "true",
            "delta.checkpointInterval": "10",
            "delta.logRetentionDuration": "interval 30 days",
        }
        assert settings.maintenance_windows is not None
        assert [window[:-1] for window in settings.maintenance_windows] == [
            ((5, 6), 22 * 60, 2 * 60, "Europe/Berlin"),
            (tuple(range(7)), 0, 24 * 60, "UTC"),
        ]
        assert settings.severities == {"DP101": None}

    def test_everything_else(self, load: Load) -> None:
        policy = load(FULL)
        assert policy.source.endswith("p.yaml")
        assert [each.path for each in policy.client_files] == ["clients/ours.yaml"]
        assert policy.severities == {"DP101": Severity.WARNING}
        first, second = policy.waivers
        assert first[:-1] == (
            "DP201",
            "gold/**",
            "deletionVectors",
            "trino@476",
            "moves to a new release",
            datetime.date(2026, 11, 21),
        )
        assert (second.table, second.feature, second.client) == ("**", "ourOwn", None)
        assert [client.id for client in policy.declared()][-1] == "bigquery"

    def test_a_definition_is_what_the_catalog_takes(self, load: Load) -> None:
        (definition,) = load(FULL).definitions
        assert definition.plain == {
            "id": "nightly-loader",
            "name": "Nightly loader",
            "versions": "dotted",
            "ranges": [
                {
                    "from": "1.0",
                    "read": {"legacy": [1, 2], "features": ["columnMapping"]},
                    "access": ["read"],
                    "whole": True,
                    "note": None,
                }
            ],
        }
        plain = {
            **definition.plain,
            "ranges": [{k: v for k, v in definition.plain["ranges"][0].items() if k != "note"}],
        }
        assert parse_client(plain, "p.yaml").id == "nightly-loader"

    def test_expired_waivers_are_kept_apart(self, load: Load) -> None:
        entry = "{rule: DP201, reason: x, expires: 2026-11-%s}"
        policy = load(f"waivers: [{entry % 20}, {entry % 21}]")
        assert [each.expires.day for each in policy.waivers] == [21]
        assert [each.expires.day for each in policy.expired] == [20]

    def test_a_policy_may_say_nothing(self, load: Load) -> None:
        assert load("") == Policy(load("").source)

    def test_lists_add_unless_they_replace(self, load: Load) -> None:
        entry = "forbid_features: [clustering], forbid_features_replace"
        settings = [
            load(f"tables: {{a: {{{entry}: {value}}}}}").tables[0].settings
            for value in ("true", "false")
        ]
        assert [each.forbid_features_replace for each in settings] == [True, False]

    @pytest.mark.parametrize(
        ("written", "value"),
        [("0", "0"), ("30", "30"), ("True", "true"), ('"007"', "007"), ("interval 1 day", None)],
    )
    def test_property_values_are_texts(self, written: str, value: str | None, load: Load) -> None:
        (entry,) = load(f"tables: {{a: {{require_properties: {{k: {written}}}}}}}").tables
        assert entry.settings.require_properties == {"k": value or written}

    def test_properties_of_delta_have_one_name_in_any_case(self, load: Load) -> None:
        """Delta stores them under this name, and only reads it."""
        written = "delta.appendonly: true, My.Key: x, my.key: y"
        (entry,) = load(f"tables: {{a: {{require_properties: {{{written}}}}}}}").tables
        assert entry.settings.require_properties == {
            "delta.appendOnly": "true",
            "My.Key": "x",
            "my.key": "y",
        }

    def test_two_spellings_of_a_property(self, load: Load) -> None:
        written = "delta.appendonly: true, delta.appendOnly: false"
        line = f"tables: {{a: {{require_properties: {{{written}}}}}}}"
        with pytest.raises(PolicyError) as caught:
            load(line)
        place = f":2:{line.rindex(' delta.') + 2}"
        assert caught.value.message.endswith(f"{place}: delta.appendOnly is listed twice")
        assert caught.value.hint == "list it once"

    def test_a_window_names_its_zone_or_has_utc(self, load: Load) -> None:
        window = "{days: [sun, mon], from: 22:00, to: 24:00%s}"
        windows = [
            load(f"tables: {{a: {{maintenance_windows: [{window % zone}]}}}}").tables[0].settings
            for zone in ("", ", timezone: UTC", ", timezone: Asia/Kolkata")
        ]
        assert [
            (each.days, each.start, each.end, each.timezone)
            for settings in windows
            for each in settings.maintenance_windows or ()
        ] == [((0, 6), 1320, 1440, zone) for zone in ("UTC", "UTC", "Asia/Kolkata")]

    def test_a_computer_without_time_zones_is_the_cause(
        self, load: Load, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("zoneinfo.available_timezones", set)
        window = "{days: daily, from: 22:00, to: 24:00, timezone: No/Where}"
        with pytest.raises(PolicyError, match="this computer has no time zone data") as caught:
            load(f"tables: {{a: {{maintenance_windows: [{window}]}}}}")
        assert "tzdata" in caught.value.hint

    @pytest.mark.parametrize(
        "written", ["Serializable", "serializable", "SERIALIZABLE", "WriteSerializable",
                    "writeSerializable", "write-serializable", "WRITE_SERIALIZABLE"]
    )  # fmt: skip
    def test_isolation_levels_in_every_spelling(self, written: str, load: Load) -> None:
        (entry,) = load(f"tables: {{a: {{isolation: {written}}}}}").tables
        level = entry.settings.isolation
        assert level is not None
        assert level.lower() == written.lower().replace("-", "").replace("_", "")


# Each text follows "policy_version: 1" on line 1.
REFUSED = [
    ("list: [1]", "2:1", 'unknown key "list"', "known names"),
    ("tabels: {}", "2:1", 'unknown key "tabels"', 'did you mean "tables"?'),
    ("tables:", "2:8", "expected a mapping from patterns to settings, found nothing", "{}"),
    ("tables: [a]", "2:9", "expected a mapping from patterns to settings, found a list", "key"),
    ("clients: trino@476", "2:10",
     'expected a list of clients, found the text "trino@476"', '"- "'),
    ("clients: [476]", "2:11", 'write "476" in quotes: YAML reads 476 as a number', '"476"'),
    ("clients: [trino 476]", "2:11", '"trino 476" is not a client', "write trino@476"),
    ("clients: [trino=v476]", "2:11", '"trino=v476" is not a client', "write trino@476"),
    ("clients: [a/b/c]", "2:11", '"a/b/c" is not a client', "trino@476"),
    ("clients:\n- trino: 476", "3:3", 'unknown key "trino"', "trino@476"),
    ("clients:\n- {as: me, access: [read]}", "3:3", "client is missing", "client:"),
    ("clients:\n- {client: trino@476, acces: [read]}", "3:23", 'unknown key "acces"', "access"),
    ("clients:\n- {client: trino@476, access: [write]}", "3:32",
     'unknown access name "write"', "read"),
    ("clients:\n- {client: trino@476, access: [read, read]}", "3:38",
     '"read" is listed twice', "once"),
    ("clients:\n- {client: trino@476, access: []}", "3:31", "the list is empty", "remove"),
    ("clients:\n- {client: trino@476, stream: yes}", "3:31",
     "expected true or false, found yes", "true or false"),
    ("clients:\n- {client: trino@476, stream: true, share: true}", "3:44",
     "a client is a stream or a share, not both", "twice"),
    ("clients:\n- {client: trino@476, as: no}", "3:27",
     'write "no" in quotes: YAML reads no as false', '"no"'),
    ("tables: {a: {max_raeder_version: 1}}", "2:14",
     'unknown key "max_raeder_version"', 'did you mean "max_reader_version"?'),
    ("tables: {a: {max_reader_version: 4}}", "2:34",
     "expected a number from 1 to 3, found the number 4", "1 to 3"),
    ('tables: {a: {max_writer_version: "5"}}', "2:34",
     'expected a number from 1 to 7, found the text "5"', "1 to 7"),
    ("tables: {a: {max_writer_version: 1.5}}", "2:34",
     "expected a number from 1 to 7, found the number 1.5", "1 to 7"),
    ("tables: {a: {max_reader_version: 1, min_reader_version: 2}}", "2:57",
     "min_reader_version 2 is above max_reader_version 1", "lower"),
    ("tables: {a: {forbid_features: [deletionvectors]}}", "2:32",
     'unknown feature "deletionvectors"', 'did you mean "deletionVectors"?'),
    ("tables: {a: {forbid_features: [xyzzy]}}", "2:32",
     'unknown feature "xyzzy"', "deltaproto features"),
    ("tables: {a: {forbid_features: [clustering, clustering]}}", "2:44",
     "clustering is listed twice", "once"),
    ("tables: {a: {forbid_features: [clustering], require_features: [clustering]}}", "2:64",
     "clustering is both required and forbidden", "one list"),
    ("tables: {a: {forbid_features: [domainMetadata], require_features: [clustering]}}", "2:68",
     "clustering is required, which requires domainMetadata, which is forbidden", "one of the two"),
    ("tables: {a: {isolation: SnapshotIsolation}}", "2:25",
     '"SnapshotIsolation" is not an isolation level that tables can declare', "Serializable"),
    ("tables: {a: {require_properties: {k: yes}}}", "2:38",
     "expected true or false, found yes", "true"),
    ("tables: {a: {require_properties: {k: 1.10}}}", "2:38",
     'write "1.10" in quotes: YAML reads 1.10 as the number 1.1', '"1.10"'),
    ("tables: {a: {require_properties: {k: }}}", "2:38",
     "expected the value of a property, found nothing", "value"),
    ("tables: {a: {maintenance_windows: [{days: mon, from: 1:00, to: 2:00}]}}", "2:43",
     'expected daily or a list of days, found the text "mon"', "daily"),
    ("tables: {a: {maintenance_windows: [{days: [monday], from: 1:00, to: 2:00}]}}", "2:44",
     'unknown day name "monday"', "mon"),
    ("tables: {a: {maintenance_windows: [{days: daily, from: 24:00, to: 2:00}]}}", "2:56",
     'expected a time such as "22:00", found the number 24:00', "22:00"),
    ("tables: {a: {maintenance_windows: [{days: daily, from: 2:00, to: 02:00}]}}", "2:36",
     "a window without length", "24:00"),
    ("tables: {a: {maintenance_windows: [{days: daily, from: 2:00}]}}", "2:36",
     "to is missing", "to:"),
    ("tables: {a: {maintenance_windows: [{days: daily, from: 2:00, to: 3:00, timezone: Berlin}]}}",
     "2:82", 'unknown time zone "Berlin"', ""),
    ("tables: {a: {maintenance_windows: [{days: daily, from: 2:00, to: 3:00, timezone: ../x}]}}",
     "2:82", 'unknown time zone "../x"', ""),
    ("tables: {a: {maintenance_windows: [{days: daily, from: 2:00, to: 3:00, timezone: Europe}]}}",
     "2:82", 'unknown time zone "Europe"', ""),
    ("tables: {./gold: {}}", "2:10",
     '"./gold" can never match: locations are absolute and have no . or .. folders', "pattern"),
    ("tables: {1: {}}", "2:10", 'write "1" in quotes: YAML reads 1 as a number', '"1"'),
    ("clients: []\ntables: {'*': {clients: []}}", "3:10",
     "the clients of all tables are declared twice", "clients"),
    ("severities: {DP1O1: off}", "2:14", 'unknown rule "DP1O1"', 'did you mean "DP101"?'),
    ("severities: {DP101: fatal}", "2:21", 'unknown severity "fatal"', "error"),
    ("severities: {DP101: }", "2:21",
     "expected one of error, warning, info, off, found nothing", "off"),
    ("waivers: [{rule: DP201, reason: x}]", "2:11", "expires is missing", "expires:"),
    ("waivers: [{rule: DP201, expires: 2027-01-01}]", "2:11", "reason is missing", "reason:"),
    ("waivers: [{rule: DP201, reason: ' ', expires: 2027-01-01}]", "2:33",
     "expected a reason, found empty text", "reason"),
    ("waivers: [{rule: DP201, reason: x, expires: soon}]", "2:45",
     'expected a date such as 2026-12-31, found the text "soon"', "2026"),
    ("waivers: [{rule: DP201, reason: x, expires: 2027-02-30}]", "2:45",
     "2027-02-30 is not a valid date", "2026"),
    ("tables: {a: {clients_replace: true}}", "2:31",
     "clients_replace without clients", 'add "clients:"'),
    ("tables: {a: {clients: [], clients_replace: yes}}", "2:44",
     "expected true or false, found yes", "true or false"),
    ("waivers: [{rule: DP201, feature: xyzzy, reason: x, expires: 2027-01-31}]", "2:34",
     'unknown feature "xyzzy"', ""),
    ("approvals: [{client: trino@1, access: [read], table: a, approver: x, reason: y,"
     " expires: 2027-01-01}]", "2:13", "an approval needs either a feature or a goal", "goal"),
    ("approvals: [{client: trino@1, access: [read], table: a, approver: x, expires: 2027-01-01,"
     " feature: clustering}]", "2:13", "reason is missing", "reason:"),
    ("approvals: [{client: trino@1, access: [], table: a, approver: x, reason: y,"
     " expires: 2027-01-01, feature: clustering}]", "2:39", "the list is empty", ""),
    ("list: {a: 1}", "2:1", 'unknown key "list"', "known names"),
    ("clients: [{trino: 476}]", "2:12", 'unknown key "trino"', "trino@476"),
    ("clients: {trino: 476}", "2:10", "expected a list of clients, found a mapping", '"- "'),
    ("tables: {'s3://u:p4ss@b/t': {}}", "2:10",
     "the address contains credentials, and addresses are shown and stored", "--storage-option"),
    ("tables: {a: {maintenance_windows: [{days: daily, from: [2], to: 3:00}]}}", "2:56",
     'expected a time such as "22:00", found a list', "22:00"),
    ("waivers: [{rule: DP201, reason: 0b_, expires: 2027-01-31}]", "2:33",
     'write "0b_" in quotes: YAML reads 0b_ as a number', '"0b_"'),
    ("catalogues: [1]", "2:14", 'write "1" in quotes: YAML reads 1 as a number', ""),
    ('catalogues: ["a\\nb"]', "2:14", '"a\\nb" contains control characters', "one line"),
    ("define: {my client: {}}", "2:10", '"my client" is not a valid client id', "dashes"),
    ("define: {x: {name: X}}", "2:13", "ranges is missing", "ranges:"),
    ("define: {x: {name: X, ranges: [{from: 2.10}]}}", "2:39",
     'write "2.10" in quotes: YAML reads 2.10 as the number 2.1', '"2.10"'),
    ("define: {x: {name: X, ranges: [{before: 476}]}}", "2:41",
     'write "476" in quotes: YAML reads 476 as a number', '"476"'),
]  # fmt: skip


class TestRefusals:
    @pytest.mark.parametrize(("text", "place", "problem", "hint"), REFUSED)
    def test_says_where_why_and_what_to_do(
        self, text: str, place: str, problem: str, hint: str, load: Load, tmp_path: Path
    ) -> None:
        with pytest.raises(PolicyError) as caught:
            load(text)
        assert caught.value.message == f"{tmp_path}/p.yaml:{place}: {problem}"
        assert hint in caught.value.hint
        assert caught.value.hint

    @pytest.mark.parametrize(
        ("text", "place", "problem"),
        [
            ("clients: []", "1:1", "policy_version is missing"),
            ("policy_version: 2\nnew_key: 1", "1:17", "policy_version 2 is not supported"),
            ("policy_version: '1'", "1:17", "expected a number from 1 to 999, found the text"),
            ("- policy_version: 1", "1:1", "expected a mapping, found a list"),
            ("policy", "1:1", 'expected a mapping, found the text "policy"'),
        ],
    )
    def test_the_version_comes_first(
        self, text: str, place: str, problem: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "p.yaml"
        file.write_text(text)
        with pytest.raises(PolicyError) as caught:
            load_policy(str(file), rules=RULES, today=TODAY)
        assert caught.value.message.startswith(f"{file}:{place}: {problem}")

    def test_each_error_is_a_line_in_the_order_of_the_file(
        self, cli: Callable[..., Ran], tmp_path: Path
    ) -> None:
        file = tmp_path / "p.yaml"
        file.write_text(
            "policy_version: 1\nclients: [{client: 476}, {}]\n"
            "approvals: [{client: trino@476, access: [read], table: t, goal: g, "
            "approver: '', reason: r, expires: 2027-01-01}]\n"
            "profiles: [1]\n"
        )
        ran = cli("check", str(tmp_path), "--policy", str(file))
        assert ran.code == 2
        *errors, hint = ran.err.splitlines()
        assert [each.split(":")[2] for each in errors] == ["2", "2", "3", "4"]
        assert "expected an approver, found empty text (write an approver)" in errors[2]
        assert all(each.startswith(f"error: {file}:") for each in errors)
        assert hint == "hint: fix all 4 errors"

    def test_long_texts_are_cut_in_messages(self, load: Load) -> None:
        with pytest.raises(PolicyError) as caught:
            load(f"{'x' * 100_000}: 1")
        assert len(caught.value.message) < 400
        with pytest.raises(PolicyError, match="is not a client"):
            load(f"clients: ['a@{' ' * 200_000}x{' ' * 200_000}y']")


FRAGMENTS = st.sampled_from(
    [line for case in REFUSED for line in case[0].splitlines()] + FULL.splitlines()
)
SCALARS = st.sampled_from(
    ["1", "2.10", "yes", "off", "~", "''", "0b_", "1:30", "+1_0.5", ".inf", "2026-02-30", "trino@1",
     "'\\0'", '"\\uD800"', "[]", "{}", "=", "[~]", "1" * 5000, "daily", "UTC", "DP101", "'*'"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["policy_version", "define", "catalogues", "clients", "tables", "severities", "waivers",
     "approvals", "goal", "approver", "ticket",
     "client", "access", "as", "stream", "share", "max_reader_version", "min_reader_version",
     "forbid_features", "isolation", "require_properties", "maintenance_windows", "days", "from",
     "to", "timezone", "rule", "reason", "expires", "feature", "name", "ranges", "DP101", "'*'"]
)  # fmt: skip
FLOW = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(KEYS, inner, max_size=4).map(
            lambda pairs: "{" + ", ".join(f"{k}: {v}" for k, v in pairs.items()) + "}"
        ),
    ),
    max_leaves=12,
)


class TestAnything:
    @given(
        data=st.binary()
        | st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))
        | st.lists(FRAGMENTS, max_size=30).map(lambda lines: "\n".join(lines).encode())
        | st.dictionaries(KEYS, FLOW, max_size=5).map(
            lambda pairs: "\n".join(
                ["policy_version: 1", *(f"{k}: {v}" for k, v in pairs.items())]
            ).encode()
        )
    )
    def test_any_file_gives_a_policy_or_a_policy_error(self, data: bytes, tmp_path: Path) -> None:
        file = tmp_path / "p.yaml"
        for content in (data, b"policy_version: 1\n" + data):
            file.write_bytes(content)
            with suppress(PolicyError):
                load_policy(str(file), rules=RULES, today=TODAY)

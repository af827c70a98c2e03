"""Table patterns: what they match, which one wins, and how settings come together."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deltaproto.policy.document.errors import Position
from deltaproto.policy.document.merging import (
    find_matching,
    merge_settings,
    settings_for,
    specificity,
)
from deltaproto.policy.document.model import Declared, Policy, PolicySettings, TableEntry, Window
from deltaproto.policy.document.patterns import (
    TableNames,
    _compile_glob,
    find_pattern_problem,
    matches_table,
)
from deltaproto.policy.finding import Severity
from deltaproto.protocol.isolation import IsolationLevel
from tests.support.failures import each_row

HERE = Position(1, 1)
LAKE = "file:///lake/gold/orders"
S3 = "s3://bucket/gold/orders"
NAMED = "main.sales.orders"

LOCATIONS = [
    ("*", LAKE, True),
    ("**", S3, True),
    ("gold/**", LAKE, True),
    ("gold/**", S3, True),
    ("gold/*", S3, True),
    ("old/*", S3, False),
    ("gold/**", "s3://bucket/gold", False),
    ("gold", LAKE, False),
    ("gold/", "s3://bucket/gold/", True),
    ("bucket/*/orders", S3, True),
    ("bucket/*", S3, False),
    ("bucket/**", S3, True),
    ("/lake/**", LAKE, True),
    ("/lake/*", LAKE, False),
    ("/lake/gold/orders", LAKE, True),
    ("/gold/orders", LAKE, False),
    ("file:///lake/gold/*", LAKE, True),
    ("file:/lake/gold/*", LAKE, True),
    ("/lake/a b/*", "file:///lake/a%20b/c", True),
    ("file:///lake/a%20b/*", "file:///lake/a%20b/c", True),
    ("/lake/gold/orders", "/lake/gold/orders", True),
    ("s3://bucket/gold/*", S3, True),
    ("s3://bucket/gold/*", "s3a://bucket/gold/orders/", True),
    ("s3a://bucket/gold/*", S3, True),
    ("s3://other/**", S3, False),
    ("abfss://c@a.dfs.core.windows.net/**", "abfss://c@a.dfs.core.windows.net/x/y", True),
    ("abfss://c/**", "az://c/x", True),
    # The account of one of them is unknown.
    ("az://c/**", "abfss://c@a.dfs.core.windows.net/x", False),
    ("/gold/**", S3, False),
    ("gold/**/orders", S3, True),
    ("gold/**/orders", "s3://b/gold/a/b/orders", True),
    ("gold/**/orders", "s3://b/gold/reorders", False),
    ("**/orders", S3, True),
    ("**/**/orders", S3, True),
    ("gold/order?", S3, True),
    ("gold?orders/**", S3, False),
    ("GOLD/**", S3, False),
    ("orders", S3, True),
    ("ord*", S3, True),
    ("gold*", S3, False),
]

NAMES = [
    ("*", True),
    ("main.sales.orders", True),
    ("MAIN.Sales.orders", True),
    ("`main`.sales.`orders`", True),
    ("main.sales.*", True),
    ("sales.*", True),
    ("main.*", False),
    ("main.**", True),
    ("main.*.orders", True),
    ("main.**.orders", True),
    ("**.orders", True),
    ("orders", True),
    ("order?", True),
    ("rders", False),
    ("a.main.sales.orders", False),
    ("sales?orders", False),
]


class TestMatches:
    @each_row(("pattern", "location", "expected"), LOCATIONS)
    def test_locations(self, pattern: str, location: str, expected: bool) -> None:
        assert matches_table(pattern, location, location) is expected

    @each_row(("pattern", "expected"), NAMES)
    def test_names(self, pattern: str, expected: bool) -> None:
        assert matches_table(pattern, NAMED, S3) is expected

    def test_the_location_of_a_named_table_counts(self) -> None:
        assert matches_table("gold/**", NAMED, S3)
        assert not matches_table("gold/**", NAMED, None)

    def test_a_name_with_the_scheme_of_its_catalog_is_a_name(self) -> None:
        assert matches_table("sales.t", "uc://host/sales.t", None)
        assert not matches_table("sales.u", "uc://host/sales.t", None)

    def test_a_quoted_part_keeps_its_dots(self) -> None:
        assert matches_table("main.*.orders", "main.`a.b`.orders", S3)
        assert matches_table("`a.b`.orders", "main.`a.b`.orders", S3)
        assert not matches_table("b.orders", "main.`a.b`.orders", S3)

    @pytest.mark.parametrize("table", ["orders", "./orders", "delta.`/lake/gold/orders`", LAKE])
    def test_a_table_named_by_its_path_goes_by_its_folder(self, table: str) -> None:
        assert matches_table("orders", table, LAKE)
        assert matches_table("ORD*", table, LAKE) is False
        assert not matches_table("lake.orders", table, LAKE)

    def test_a_folder_with_a_dot_is_no_catalog_name(self) -> None:
        assert matches_table("orders.*", "orders.delta", "file:///lake/orders.delta")

    def test_without_a_location_a_path_stands_for_itself(self) -> None:
        assert matches_table("gold/*", "/lake/gold/orders", None)
        assert matches_table("orders", "/lake/gold/orders", None)

    def test_stars_without_end_take_no_time(self) -> None:
        assert not matches_table("/" + "*a" * 300 + "/**b", "x", "/" + "a" * 5000)
        assert not matches_table("**/" * 300 + "b", "x", "/" + "a/" * 2000)

    @given(st.text(), st.text(), st.none() | st.text())
    @example("file:///%ff", "x", "file:///\ud800%ff")
    def test_never_raises(self, pattern: str, table: str, location: str | None) -> None:
        assert isinstance(matches_table(pattern, table, location), bool)
        assert len(specificity(pattern)) == 8
        find_pattern_problem(pattern)

    @given(st.text(alphabet="a/*?", max_size=8), st.text(alphabet="ab/", max_size=7), st.booleans())
    @example("**/a", "a", True)
    @example("a/**/**/*", "a/a", True)
    @example("**/*/**", "a/", False)
    def test_agrees_with_the_plain_definition(
        self, pattern: str, text: str, anchored: bool
    ) -> None:
        starts = [0] if anchored else [0, *(n + 1 for n, c in enumerate(text) if c == "/")]
        expected = any(naive(tokens(pattern), text[start:], first=True) for start in starts)
        assert _compile_glob(pattern, "/", anchored=anchored).matches(text) is expected


def tokens(pattern: str) -> tuple[str, ...]:
    import re

    return tuple(re.sub(r"\*{2,}", "**", part) for part in re.findall(r"\*+|.", pattern))


def naive(rest: tuple[str, ...], text: str, *, first: bool) -> bool:
    """A pattern matches when its first token does and the others match what is left.

    `first`: the token is at the start of the pattern or follows a slash.
    """
    if not rest:
        return not text
    token, others = rest[0], rest[1:]
    if token in ("*", "**"):
        optional = token == "**" and first and others[:1] == ("/",)
        if optional and naive(others[1:], text, first=True):
            return True
        longest = len(text) if token == "**" or "/" not in text else text.index("/")
        return any(naive(others, text[n:], first=False) for n in range(longest + 1))
    if not text or not (token == text[0] or (token == "?" and text[0] != "/")):
        return False
    return naive(others, text[1:], first=token == "/")


class TestProblem:
    @each_row(
        ("pattern", "why"),
        [
            ("gold/{a,b}/**", "{ is not supported"), ("{a,b}", "{ is"), ("gold/[ab]*", "[ is"),
            ("ord[e]rs", "[ is"), ("~/gold/**", "~ is"), ("!gold/**", "! is"),
            ("gold//orders", "// is"), ("/data//gold/**", "// is"), ("s3://b//x", "// is"),
            ("/data/a%20b/**", "%20"), ("s3://b/a%2Fb", "%2F"), ("gold\\orders", "a backslash"),
            ("C:\\gold", "a backslash"), ("$HOME/x", "$HOME is"), ("/data/$env/**", "$env is"),
            ("a|b/c", "| is"), ("main.(a|b).t", "| is"), ("+(a)", "+( is"), ("gold/@(x)", "@( is"),
            ("/data/*(1)/t", "*( is"), ("^gold/x", "^ is"), ("gold/.*", ".* is"),
            ("a/.*/t", ".* is"),
        ],
    )  # fmt: skip
    def test_syntax_of_other_tools(self, pattern: str, why: str) -> None:
        assert why in (find_pattern_problem(pattern) or "")

    @each_row("pattern", [" a", "a ", "./gold/**", "a/../b", "a..b", "``", "/", "."])
    def test_patterns_that_match_nothing(self, pattern: str) -> None:
        assert find_pattern_problem(pattern)

    @each_row(
        "pattern",
        [
            "*",
            "**",
            "a.b",
            "gold/",
            "s3://b/**",
            "`a.b`.c",
            "`a|b`.c",
            "/data/_$folder$/t",
            "a$b/c^d/x(1)/t+1",
            "main.sales.*",
            "gold/.hidden",
            "?",
            "file:///a%20b/*",
            "`a{b}`.c",
            "a%b",
        ],
    )
    def test_patterns_that_match_something(self, pattern: str) -> None:
        assert find_pattern_problem(pattern) is None


def policy(*entries: tuple[str, PolicySettings], **more: object) -> Policy:
    tables = tuple(TableEntry(pattern, settings, HERE) for pattern, settings in entries)
    return Policy("p.yaml", tables=tables)._replace(**more)


def client(text: str) -> Declared:
    return Declared(text, text, None, None, (), None, None, HERE)


# Of each pair, both match /data/lake/gold/orders.
NARROWER = [
    ("/data/lake/**", "gold/orders"),
    ("/data/lake/**", "orders"),
    ("/data/lake/gold/*", "orders"),
    ("**", "*"),
    ("gold/**", "/data/lake/**"),
    ("gold/**", "gold/*"),
    ("gold/*", "gold/ord*"),
    ("gold/ord*", "gold/order?"),
    ("gold/*", "**/orders"),
    ("/data/lake/gold/**", "**/gold/orders"),
    ("gold/orders", "/data/lake/gold/orders"),
    ("orders", "gold/orders"),
    ("/data/*/*/orders", "/data/*/gold/orders"),
]
WINDOWS = (Window((0,), 0, 60, "UTC", HERE),)
# Settings of "*" and of "orders", and how many notices they give.
WEAKENED = [
    (PolicySettings(max_reader_version=1), PolicySettings(max_reader_version=3), 1),
    (PolicySettings(max_reader_version=3), PolicySettings(max_reader_version=1), 0),
    (PolicySettings(max_writer_version=2), PolicySettings(max_writer_version=7), 1),
    (PolicySettings(min_writer_version=5), PolicySettings(min_writer_version=2), 1),
    (PolicySettings(min_reader_version=1), PolicySettings(min_reader_version=2), 0),
    (
        PolicySettings(isolation=IsolationLevel.SERIALIZABLE),
        PolicySettings(isolation=IsolationLevel.WRITE_SERIALIZABLE),
        1,
    ),
    (
        PolicySettings(isolation=IsolationLevel.WRITE_SERIALIZABLE),
        PolicySettings(isolation=IsolationLevel.SERIALIZABLE),
        0,
    ),
    (
        PolicySettings(severities={"DP201": Severity.ERROR, "DP202": Severity.INFO}),
        PolicySettings(severities={"DP201": None, "DP202": Severity.ERROR}),
        1,
    ),
    (
        PolicySettings(require_properties={"a": "1"}),
        PolicySettings(require_properties={"a": "2"}),
        1,
    ),
    (
        PolicySettings(require_properties={"a": "1"}),
        PolicySettings(require_properties={"b": "2"}),
        0,
    ),
    (PolicySettings(maintenance_windows=WINDOWS), PolicySettings(maintenance_windows=WINDOWS), 0),
    (PolicySettings(maintenance_windows=()), PolicySettings(maintenance_windows=WINDOWS), 1),
    (PolicySettings(forbid_features=("a",)), PolicySettings(forbid_features=("b",)), 1),
    (PolicySettings(forbid_features=("a",)), PolicySettings(forbid_features=("a", "b")), 0),
    (PolicySettings(require_features=("a",)), PolicySettings(require_features=()), 1),
    (
        PolicySettings(require_features=("a",)),
        PolicySettings(require_features=(), require_features_replace=True),
        1,
    ),
]


class TestSettings:
    def test_each_setting_comes_from_the_most_specific_pattern_that_has_it(self) -> None:
        found = settings_for(
            policy(
                ("main.sales.*", PolicySettings(max_reader_version=1)),
                ("*", PolicySettings(max_reader_version=3, max_writer_version=5)),
                ("other.*.*", PolicySettings(max_writer_version=2)),
            ),
            NAMED,
            S3,
        )
        assert (found.max_reader_version, found.max_writer_version) == (1, 5)

    def test_of_equals_the_later_wins(self) -> None:
        first = ("ma*.*.*", PolicySettings(max_reader_version=1))
        later = ("*.*.or*", PolicySettings(max_reader_version=2))
        assert specificity(first[0]) == specificity(later[0])
        assert settings_for(policy(first, later), NAMED, S3).max_reader_version == 2
        assert settings_for(policy(later, first), NAMED, S3).max_reader_version == 1

    def test_severities_and_properties_merge_key_by_key(self) -> None:
        found = settings_for(
            policy(
                (
                    "sales.*",
                    PolicySettings(require_properties={"a": "2"}, severities={"DP101": None}),
                ),
                (
                    "*",
                    PolicySettings(
                        require_properties={"a": "1", "b": "1"},
                        severities={"DP101": Severity.INFO, "DP102": Severity.INFO},
                    ),
                ),
                severities={"DP102": Severity.ERROR, "DP103": None},
            ),
            NAMED,
            S3,
        )
        assert found.require_properties == {"a": "2", "b": "1"}
        assert found.severities == {"DP101": None, "DP102": Severity.INFO, "DP103": None}

    def test_an_empty_list_says_something(self) -> None:
        window = Window((0,), 0, 60, "UTC", HERE)
        found = settings_for(
            policy(
                (
                    "*",
                    PolicySettings(maintenance_windows=(window,), forbid_features=("clustering",)),
                ),
                ("sales.*", PolicySettings(maintenance_windows=())),
                clients=(),
            ),
            NAMED,
            S3,
        )
        assert (found.maintenance_windows, found.clients) == ((), ())
        assert found.forbid_features == ("clustering",)

    @each_row(("wide", "narrow"), NARROWER)
    def test_the_narrower_pattern_decides_in_either_order(self, wide: str, narrow: str) -> None:
        one = (wide, PolicySettings(max_reader_version=3))
        other = (narrow, PolicySettings(max_reader_version=1))
        for entries in ((one, other), (other, one)):
            found = settings_for(policy(*entries), "/data/lake/gold/orders", None)
            assert found.max_reader_version == 1

    def test_lists_of_all_matching_patterns_add_up(self) -> None:
        clients = {text: client(text) for text in ("a@1", "b@1", "c@1")}
        found = settings_for(
            policy(
                (
                    "sales.*",
                    PolicySettings(clients=(clients["b@1"],), forbid_features=("clustering",)),
                ),
                (
                    "*",
                    PolicySettings(
                        require_features=("appendOnly",), forbid_features=("rowTracking",)
                    ),
                ),
                ("orders", PolicySettings(clients=(clients["c@1"],), require_features=())),
                clients=(clients["a@1"],),
            ),
            NAMED,
            S3,
        )
        assert found.clients == tuple(clients.values())
        assert found.forbid_features == ("rowTracking", "clustering")
        assert found.require_features == ("appendOnly",)

    def test_a_list_replaces_only_when_it_says_so(self) -> None:
        narrow = PolicySettings(
            clients=(client("b@1"),), clients_replace=True,
            forbid_features=(), forbid_features_replace=True,
        )  # fmt: skip
        wide = PolicySettings(forbid_features=("clustering",))
        both = policy(("*", wide), ("orders", narrow), clients=(client("a@1"),))
        found = settings_for(both, NAMED, S3)
        assert found.clients == (client("b@1"),)
        assert found.forbid_features == ()
        assert found.clients_replace is False

    @pytest.mark.parametrize(
        ("required", "replaces", "notices"),
        [(("b", "a"), True, 0), (("b",), True, 1), (("b",), False, 1), (("a", "b"), False, 0)],
    )
    def test_a_list_that_loses_nothing_is_no_notice(
        self, required: tuple[str, ...], replaces: bool, notices: int
    ) -> None:
        narrow = PolicySettings(require_features=required, require_features_replace=replaces)
        rules = policy(("*", PolicySettings(require_features=("a",))), ("orders", narrow))
        found = merge_settings(rules, find_matching(rules, TableNames(NAMED, S3)))
        assert len(found.notices) == notices
        expected = required if replaces else tuple(dict.fromkeys(("a", *required)))
        assert found.settings.require_features == expected

    def test_each_setting_names_its_pattern(self) -> None:
        rules = policy(
            ("*", PolicySettings(max_reader_version=3, severities={"DP101": None})),
            ("orders", PolicySettings(max_reader_version=1, clients=(client("b@1"),))),
            clients=(client("a@1"),),
        )
        found = merge_settings(rules, find_matching(rules, TableNames(NAMED, S3))).decisions
        assert [each[:3] for each in found] == [
            ("clients", "a@1", None),
            ("clients", "b@1", "orders"),
            ("max_reader_version", "1", "orders"),
            ("severities.DP101", "off", "*"),
        ]

    @each_row(("wide", "narrow", "notices"), WEAKENED)
    def test_what_a_pattern_weakens_is_noticed(
        self, wide: PolicySettings, narrow: PolicySettings, notices: int
    ) -> None:
        rules = policy(("*", wide), ("orders", narrow))
        found = merge_settings(rules, find_matching(rules, TableNames(NAMED, S3))).notices
        assert len(found) == notices, found
        assert all(each.pattern == "orders" and each.hint for each in found)

    def test_without_a_match_there_are_only_the_settings_of_all_tables(self) -> None:
        entry = ("silver/**", PolicySettings(max_reader_version=1))
        assert settings_for(policy(entry), NAMED, S3) == PolicySettings()


def test_a_remembered_folder_means_what_its_real_path_means(tmp_path: Path) -> None:
    """Links at every level: the table itself, a folder above it, and both."""
    real = tmp_path / "lake" / "gold" / "orders"
    real.mkdir(parents=True)
    (tmp_path / "alias").symlink_to(tmp_path / "lake")
    (tmp_path / "lake" / "silver").mkdir()
    (tmp_path / "lake" / "silver" / "copy").symlink_to(real)
    folders: dict[str, str] = {}
    for where in (
        real,
        tmp_path / "alias" / "gold" / "orders",
        tmp_path / "alias" / "silver" / "copy",
        tmp_path / "lake" / "silver" / "copy",
        tmp_path / "alias" / "gold" / "missing",
    ):
        for _ in range(2):
            remembered = TableNames(str(where), f"file://{where}", folders)
            plain = TableNames(str(where), f"file://{where}")
            for pattern in (f"{tmp_path}/lake/gold/*", "gold/*", "alias/**", "silver/*", "orders"):
                assert remembered.match(pattern) is plain.match(pattern), (where, pattern)
    assert TableNames("x", f"file://{tmp_path}/alias/gold/orders", folders).match(
        "lake/gold/orders"
    )

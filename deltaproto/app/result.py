"""What all results of the Python API have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self, overload

from deltaproto.counts import counted, first_names
from deltaproto.errors import DeltaprotoError, EngineError, ExitCode, ResultError
from deltaproto.policy.finding import FailOn, Finding, exit_code

if TYPE_CHECKING:
    from deltaproto.render.document.blocks import Document


class Result:
    """A result of the Python API. Notebooks show it as a table.

    No content of a result raises an error by itself: use `ok`, or call `raise_for_status()`.
    """

    __slots__ = ()

    @property
    def ok(self) -> bool:
        """True if the result is complete and has no error: the command would exit with 0."""
        return self._failure() is None

    def raise_for_status(self) -> Self:
        """Return the result itself if it is ok.

        Raises:
            TableError: when the table could not be read.
            ResultError: for every other result that is not ok.
        """
        error = self._failure()
        if error is not None:
            raise error
        return self

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of the command with the same name, without its envelope."""

    @abstractmethod
    def _failure(self) -> DeltaprotoError | None:
        """Return the error of `raise_for_status()`; None if the result is ok."""

    @abstractmethod
    def _document(self) -> Document: ...

    def _repr_html_(self) -> str:
        from deltaproto.render.document.html import fragment_html

        return fragment_html(self._document())


def findings_failure(
    result: Result, table: str, findings: Iterable[Finding], *, complete: bool
) -> ResultError | None:
    """Return the error for an incomplete result, or for its findings of severity error."""
    if not complete:
        return ResultError(
            result,
            ExitCode.UNREADABLE,
            f"{table}: the result is incomplete",
            "newer commits may exist, or a reader is not available: see its findings",
        )
    found = [each for each in findings if exit_code([each], FailOn.ERROR) is not ExitCode.OK]
    if not found:
        return None
    count = f" (first of {len(found)} errors)" if len(found) > 1 else ""
    message = f"{table}: {found[0].rule} {found[0].message}{count}"
    return ResultError(result, ExitCode.FINDINGS, message, found[0].hint)


def to_dict(value: Result) -> dict[str, Any]:
    """Return `value.to_dict()`: the JSON of the command with the same name.

    A plan's times are relative to now.

    Raises:
        TypeError: for a value that is not a result.
    """
    if not isinstance(value, Result):
        raise TypeError(f"{type(value).__name__} is not a result of this package")
    return value.to_dict()


_PAGE = "_repr_html_"


def show_in_notebooks(*records: type) -> None:
    """Let notebooks show these records as tables of their attributes.

    Results consist of records of other packages, which cannot render them.
    """
    for record in records:
        setattr(record, _PAGE, _record_html)


def _record_html(record: Any) -> str:
    from deltaproto.render.document.blocks import Document, TableBlock
    from deltaproto.render.document.html import fragment_html

    values = record._asdict() if hasattr(record, "_asdict") else vars(record)
    cells = [[(name,), (_shown(value),)] for name, value in values.items()]
    title = repr(record).removeprefix("<").removesuffix(">")
    return fragment_html(Document(title, (), [TableBlock(("Attribute", "Value"), cells)]))


_SHOWN = 20
"""rows in a notebook"""
_NAMED = 6
"""columns in the short text"""


class Rows(Sequence[Mapping[str, Any]]):
    """A table of results. Every library that reads Arrow accepts it as it is.

    `polars.DataFrame(rows)`, `pyarrow.table(rows)` and, in DuckDB, `FROM rows` need no conversion.
    """

    def __init__(self, table: Any) -> None:
        self._table = table

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, Any]) -> Rows:
        """Make a table of rows.

        Args:
            columns: the Arrow type of each column.
        """
        import pyarrow as pa

        return cls(pa.Table.from_pylist([dict(row) for row in rows], pa.schema(columns.items())))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._table.column_names)

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table`."""
        return self._table

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`.

        Raises:
            EngineError: when pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise EngineError("pandas is not installed", "pip install pandas")
        return self._table.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Rows:
        if isinstance(index, slice):
            return Rows(self._table.take(list(range(len(self))[index])))
        row: Mapping[str, Any] = self._table.slice(range(len(self))[index], 1).to_pylist()[0]
        return row

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for batch in self._table.to_batches():
            yield from batch.to_pylist()

    def __repr__(self) -> str:
        columns = first_names(self.columns, _NAMED)
        return f"<Rows: {counted(len(self), 'row')} of {columns}>"

    def _document(self) -> Document:
        from deltaproto.render.document.blocks import Document, TableBlock

        cells = [[(_shown(value),) for value in row.values()] for row in self[:_SHOWN]]
        count = counted(len(self), "row") + (f", first {_SHOWN}" if len(self) > _SHOWN else "")
        return Document("", (count,), [TableBlock(self.columns, cells)])

    def _repr_html_(self) -> str:
        from deltaproto.render.document.html import fragment_html

        return fragment_html(self._document())


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    if isinstance(value, list) or type(value) is tuple:
        return ", ".join(map(str, value))
    return "" if value is None else str(value)

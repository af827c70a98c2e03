"""`deltaproto features`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.cli import completion, options
from deltaproto.cli.declare import Argument, Command
from deltaproto.errors import ExitCode, UsageError
from deltaproto.protocol import feature_catalog
from deltaproto.render.features import write_features


def run(values: Mapping[str, Any]) -> int:
    """Render the catalog, or one feature."""
    name = values["name"]
    chosen = feature_catalog.all_features()
    if name is not None:
        feature, near = feature_catalog.search_feature(name)
        if feature is None:
            raise UsageError(
                f'unknown feature "{name}"',
                options.did_you_mean(near, "run `deltaproto features`"),
            )
        chosen = (feature,)
    with options.open_output(values["output"]) as file:
        write_features(
            chosen,
            values["format"],
            file,
            color=not values["no_color"],
            detailed=name is not None,
        )
    return int(ExitCode.OK)


COMMAND = Command(
    "features",
    "Show the catalog of table features, or everything about one feature.",
    run,
    Argument(
        "name",
        "[NAME]",
        "One feature. Default: all features.",
        required=False,
        words=completion.features,
    ),
    (options.FORMAT, options.OUTPUT, options.NO_COLOR, options.DEBUG),
    examples=(
        "features",
        "features deletionVectors",
    ),
    more_exits=(),
)

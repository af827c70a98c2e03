"""Column mapping, and the features that readers must know."""

from __future__ import annotations

from deltaproto.certification.kit.recipe import Recipe, State
from deltaproto.certification.kit.recipes.common import DELETE, LOST, MAPPED, VECTORS
from deltaproto.clients.hazards import MAPPING_ADDED_LATER

READERS = (
    Recipe(
        "columnMapping.name",
        "columnMapping",
        State.PRESENT,
        "columns are mapped by name",
        properties=MAPPED,
    ),
    Recipe(
        "columnMapping.id",
        "columnMapping",
        State.PRESENT,
        "columns are mapped by id",
        properties={"delta.columnMapping.mode": "id"},
    ),
    Recipe(
        "columnMapping.renamed",
        "columnMapping",
        State.PRESENT,
        "mapping was switched on later, and a column renamed",
        then=(
            "alter table {t} set tblproperties ('delta.columnMapping.mode' = 'name')",
            "alter table {t} rename column price to cost",
            "insert into {t} select 20, 'w20', 10.0D",
        ),
        where=(("cost", ">=", 7.5),),
        hazard=MAPPING_ADDED_LATER,
    ),
    Recipe(
        "columnMapping.again",
        "columnMapping",
        State.PRESENT,
        "a column was dropped, and one of the same name added: its old values are gone",
        properties=MAPPED,
        then=("alter table {t} drop column price", "alter table {t} add column price double"),
    ),
    Recipe(
        "deletionVectors.enabled",
        "deletionVectors",
        State.ENABLED,
        "deletion vectors are on, and no file has one",
        properties=VECTORS,
    ),
    Recipe(
        "deletionVectors.present",
        "deletionVectors",
        State.PRESENT,
        "deletion vectors hide two rows",
        properties=VECTORS,
        then=(DELETE,),
        lost=LOST,
    ),
    Recipe(
        "deletionVectors.off-again",
        "deletionVectors",
        State.PRESENT,
        "deletion vectors hide two rows; the property was switched off since",
        properties=VECTORS,
        then=(
            DELETE,
            "alter table {t} set tblproperties ('delta.enableDeletionVectors' = 'false')",
        ),
        lost=LOST,
    ),
    Recipe(
        "v2Checkpoint.enabled",
        "v2Checkpoint",
        State.ENABLED,
        "the next checkpoint will be a V2 checkpoint",
        properties={"delta.checkpointPolicy": "v2"},
    ),
    Recipe(
        "v2Checkpoint.present",
        "v2Checkpoint",
        State.PRESENT,
        "a V2 checkpoint in Parquet; the commits before it are gone",
        properties={"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
        expire=True,
    ),
    Recipe(
        "v2Checkpoint.json",
        "v2Checkpoint",
        State.PRESENT,
        "a V2 checkpoint in JSON; the commits before it are gone",
        properties={"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
        conf={"spark.databricks.delta.checkpointV2.topLevelFileFormat": "json"},
        expire=True,
    ),
    Recipe(
        "timestampNtz.present",
        "timestampNtz",
        State.PRESENT,
        "a column of times without a time zone",
        columns=(
            (
                "at",
                "timestamp_ntz",
                "timestamp_ntz'2026-01-01 00:00:00' + make_interval(0, 0, 0, id)",
            ),
        ),
        fill={"at": None},
    ),
    *(
        recipe
        for name, conf in (
            ("typeWidening", {}),
            ("typeWidening-preview", {"delta.feature.typeWidening-preview": "supported"}),
        )
        for recipe in (
            Recipe(
                f"{name}.enabled",
                name,
                State.ENABLED,
                "type widening is on, and no column was widened",
                properties={"delta.enableTypeWidening": "true", **conf},
            ),
            Recipe(
                f"{name}.present",
                name,
                State.PRESENT,
                "columns were widened: files hold the narrow types",
                columns=(
                    ("n", "int", "cast(id as int)"),
                    ("small", "smallint", "cast(id as smallint)"),
                ),
                properties={"delta.enableTypeWidening": "true", **conf},
                then=(
                    "alter table {t} alter column n type bigint",
                    "alter table {t} alter column small type int",
                    "insert into {t} select 20, 'w20', 10.0D, 5000000000, 100000",
                ),
                fill={"n": 6000000000, "small": 70000},
                where=(("n", ">=", 5000000000), ("small", "<", 5)),
            ),
        )
    ),
    *(
        Recipe(
            f"{name}.present",
            name,
            State.PRESENT,
            "a VARIANT column",
            columns=(("v", "variant", "parse_json(concat('{\"a\":', id, '}'))"),),
            conf=conf,
            fill={"v": None},
        )
        for name, conf in (
            ("variantType", {}),
            (
                "variantType-preview",
                {"spark.databricks.delta.variant.forceUsePreviewTableFeature": "true"},
            ),
        )
    ),
    *(
        Recipe(
            f"{name}.present",
            name,
            State.PRESENT,
            "a VARIANT column, shredded in the files",
            columns=(("v", "variant", "parse_json(concat('{\"a\":', id, '}'))"),),
            properties={"delta.enableVariantShredding": "true"},
            conf={
                "spark.databricks.delta.variantShredding.forceUsePreviewTableFeature": preview,
            },
            fill={"v": None},
        )
        for name, preview in (("variantShredding", "false"), ("variantShredding-preview", "true"))
    ),
)

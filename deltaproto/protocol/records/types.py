"""Reader-writer features about column types, except VARIANT (OSS Delta 4.4.0)."""

from __future__ import annotations

from deltaproto.protocol.feature import (
    DropBehavior,
    DropRefusal,
    EnablementTrigger,
    Feature,
    FeatureKind,
    FeatureStatus,
    FirstVersions,
    PropertyIs,
    SchemaHas,
    Trait,
)
from deltaproto.protocol.records.common import (
    COMPATIBILITY_PAGE,
    DROP_LEGACY_PAGE,
    DROP_PAGE,
    NEVER_DROPPED,
    VALID_NAMES,
    feature_property_trigger,
)

_WIDENING_PAGE = "learn.microsoft.com/azure/databricks/tables/features/type-widening"
_WIDENING_STEPS = ("UNSET TBLPROPERTIES", "REORG", "DROP FEATURE")
_WIDENING_NOTE = (
    "No preparation is needed if the property is unset and no type was changed; then one DROP "
    "FEATURE … TRUNCATE HISTORY is enough. The second DROP FEATURE entry in the history removes "
    "the type changes from the schema."
)
_GEO_REFUSAL = DropRefusal(
    when="the schema has a GEOMETRY or GEOGRAPHY column",
    error="DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE",
    remedy="Drop those columns first.",
)
_GEO_RUNTIME = (
    "GEOMETRY and GEOGRAPHY columns are documented from 17.1 as a public preview; no page "
    "found names the table feature."
)

RECORDS: tuple[Feature, ...] = (
    Feature(
        name="timestampNtz",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.STABLE,
        summary="Allows columns of type TIMESTAMP_NTZ, a timestamp without a time zone.",
        min_reader=3,
        min_writer=7,
        enablement=SchemaHas(Trait.TIMESTAMP_NTZ),
        triggers=(
            EnablementTrigger(
                "column type TIMESTAMP_NTZ",
                by="schema",
                existing_tables=False,
                note="On an existing table it stops with "
                "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT until the feature is added manually.",
            ),
            feature_property_trigger("timestampNtz"),
        ),
        switch_off="drop the TIMESTAMP_NTZ columns",
        aliases=("timestampWithoutTimezone",),
        since=FirstVersions(delta_spark="2.4.0", databricks="13.3 LTS"),
        drop=NEVER_DROPPED,
        notes=(
            (
                "Some logs have the name timestampWithoutTimezone, which is not in the spec; "
                "delta-kernel-rs reads it as timestampNtz and never writes it."
            ),
        ),
        sources=(
            "PROTOCOL.md#timestamp-without-timezone-timestampntz",
            "delta-kernel-rs kernel/src/table_features/mod.rs TimestampWithoutTimezone",
            COMPATIBILITY_PAGE,
        ),
    ),
    Feature(
        name="typeWidening",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.STABLE,
        summary="Lets a column change to a wider type without rewriting data files.",
        min_reader=3,
        min_writer=7,
        enablement=PropertyIs("delta.enableTypeWidening"),
        triggers=(
            EnablementTrigger(
                "delta.enableTypeWidening=true",
                by="property",
                note="Adds nothing when typeWidening-preview is already supported.",
            ),
        ),
        switch_off="delta.enableTypeWidening=false",
        since=FirstVersions(delta_spark="3.3.0", databricks="15.4 LTS"),
        drop=DropBehavior(
            delta_spark="3.3.0",
            databricks="16.3",
            commits=(4, 7),
            preparation=_WIDENING_STEPS,
            rewrites="affected",
            protects_history=True,
            note=_WIDENING_NOTE + " The Databricks runtime is that of the drop page, which lists "
            "the feature; tables of 15.4 LTS have typeWidening-preview.",
        ),
        notes=(
            "Delta 3.3 accepts the name, but the property adds it only from 4.0.0.",
            "The widened type stays when the feature is dropped.",
        ),
        sources=(
            "PROTOCOL.md#type-widening",
            "PreDowngradeTableFeatureCommand.scala TypeWideningPreDowngradeCommand",
            DROP_PAGE,
            _WIDENING_PAGE,
        ),
    ),
    Feature(
        name="typeWidening-preview",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.PREVIEW,
        summary="The preview name of type widening; still supported if listed.",
        min_reader=3,
        min_writer=7,
        enablement=PropertyIs("delta.enableTypeWidening"),
        triggers=(
            feature_property_trigger(
                "typeWidening-preview", note="In Delta 3.2 the property added it."
            ),
        ),
        switch_off="delta.enableTypeWidening=false",
        since=FirstVersions(
            delta_spark="3.2.0",
            databricks="15.4 LTS",
            databricks_note="Older pages name 15.2, as a public preview.",
        ),
        drop=DropBehavior(
            delta_spark="3.2.0",
            databricks="15.4 LTS",
            commits=(4, 7),
            preparation=_WIDENING_STEPS,
            rewrites="affected",
            protects_history=True,
            note=_WIDENING_NOTE + " The Databricks runtime is from two pages: the legacy "
            "drop page lists the feature, the type widening page starts at 15.4 LTS.",
        ),
        notes=("It can be listed together with typeWidening; neither requires the other.",),
        sources=(
            "TableFeature.scala TypeWideningPreviewTableFeature",
            DROP_LEGACY_PAGE,
            _WIDENING_PAGE,
        ),
    ),
    Feature(
        name="geospatial",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.STABLE,
        summary="Allows columns of type GEOMETRY and GEOGRAPHY.",
        min_reader=3,
        min_writer=7,
        enablement=SchemaHas(Trait.GEOSPATIAL),
        triggers=(
            EnablementTrigger(
                "column type GEOMETRY or GEOGRAPHY",
                by="schema",
                note="Refused unless spark.databricks.delta.geo.preview.enabled is true; the "
                "default is false. Adds nothing when geospatial-dev is already supported.",
            ),
        ),
        switch_off="drop the GEOMETRY and GEOGRAPHY columns",
        aliases=("GeospatialType",),
        since=FirstVersions(delta_spark="4.3.0", databricks=None, databricks_note=_GEO_RUNTIME),
        drop=DropBehavior(
            delta_spark="4.3.0",
            databricks=None,
            commits=(4, 4),
            protects_history=True,
            refusals=(_GEO_REFUSAL,),
        ),
        notes=("The final name, but still behind a preview setting in Delta 4.4.0.",),
        sources=("TableFeature.scala GeoSpatialTableFeature", VALID_NAMES + " (not listed yet)"),
    ),
    Feature(
        name="geospatial-dev",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.PREVIEW,
        summary="The private-preview name of the geospatial types.",
        min_reader=3,
        min_writer=7,
        enablement=SchemaHas(Trait.GEOSPATIAL),
        triggers=(feature_property_trigger("geospatial-dev"),),
        switch_off="drop the GEOMETRY and GEOGRAPHY columns",
        since=FirstVersions(delta_spark="4.3.0", databricks=None, databricks_note=_GEO_RUNTIME),
        drop=DropBehavior(
            delta_spark="4.3.0",
            databricks=None,
            commits=(4, 4),
            protects_history=True,
            refusals=(_GEO_REFUSAL,),
        ),
        notes=("Delta Kernel (Java and Rust) supports only the name geospatial.",),
        sources=("TableFeature.scala GeoSpatialPreviewTableFeature",),
    ),
)

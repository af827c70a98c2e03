"""Reader-writer features about the VARIANT type (OSS Delta 4.4.0)."""

from __future__ import annotations

from deltaproto.protocol.feature import (
    DropBehavior,
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
    NEVER_DROPPED,
    feature_property_trigger,
    requires_supported,
)

_SHREDDING_PAGE = "learn.microsoft.com/azure/databricks/tables/features/variant-shredding"

RECORDS: tuple[Feature, ...] = (
    Feature(
        name="variantType",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.STABLE,
        summary="Allows columns of type VARIANT for semi-structured data.",
        min_reader=3,
        min_writer=7,
        enablement=SchemaHas(Trait.VARIANT),
        triggers=(
            EnablementTrigger(
                "column type VARIANT",
                by="schema",
                note="Adds nothing when variantType-preview is already supported.",
            ),
        ),
        switch_off="drop the VARIANT columns",
        since=FirstVersions(delta_spark="4.0.0", databricks="15.4 LTS"),
        drop=NEVER_DROPPED,
        notes=("delta-rs 1.6.6 sometimes adds it without a VARIANT column.",),
        sources=("PROTOCOL.md#variant-data-type", COMPATIBILITY_PAGE),
    ),
    Feature(
        name="variantType-preview",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.PREVIEW,
        summary="The preview name of the VARIANT type; still supported if listed.",
        min_reader=3,
        min_writer=7,
        enablement=SchemaHas(Trait.VARIANT),
        triggers=(
            feature_property_trigger("variantType-preview"),
            EnablementTrigger(
                "column type VARIANT",
                by="schema",
                note="Only while spark.databricks.delta.variant.forceUsePreviewTableFeature is "
                "true; the default is false.",
            ),
        ),
        switch_off="drop the VARIANT columns",
        since=FirstVersions(delta_spark="3.3.0", databricks=None),
        drop=NEVER_DROPPED,
        notes=("Same file format as variantType; both names can be listed together.",),
        sources=("TableFeature.scala VariantTypePreviewTableFeature",),
    ),
    Feature(
        name="variantShredding",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.STABLE,
        summary="Lets writers store fields of a VARIANT column as separate columns.",
        min_reader=3,
        min_writer=7,
        enablement=PropertyIs("delta.enableVariantShredding"),
        triggers=(
            feature_property_trigger("variantShredding"),
            EnablementTrigger(
                "delta.enableVariantShredding=true",
                by="property",
                note="Adds variantShredding-preview instead unless spark.databricks.delta."
                "variantShredding.forceUsePreviewTableFeature is false (default true).",
            ),
        ),
        switch_off="delta.enableVariantShredding=false",
        requires=requires_supported("variantType", source="PROTOCOL.md#variant-shredding"),
        since=FirstVersions(delta_spark="4.1.0", databricks="17.3"),
        drop=DropBehavior(
            delta_spark=None,
            databricks="17.3",
            commits=(0, 0),
            note="On Databricks, dropping it rewrites shredded files.",
        ),
        notes=("Shredded files stay shredded when the property is disabled.",),
        sources=(
            "PROTOCOL.md#variant-shredding",
            "TableFeature.scala VariantShreddingTableFeature",
            _SHREDDING_PAGE,
        ),
    ),
    Feature(
        name="variantShredding-preview",
        kind=FeatureKind.READER_WRITER,
        status=FeatureStatus.PREVIEW,
        summary="The preview name of variant shredding, which Delta 4.4.0 still adds.",
        min_reader=3,
        min_writer=7,
        enablement=PropertyIs("delta.enableVariantShredding"),
        triggers=(
            EnablementTrigger(
                "delta.enableVariantShredding=true",
                by="property",
                note="Adds nothing when variantShredding is already supported.",
            ),
        ),
        switch_off="delta.enableVariantShredding=false",
        since=FirstVersions(delta_spark="4.0.0", databricks="17.2"),
        drop=DropBehavior(
            delta_spark=None,
            databricks="17.2",
            commits=(0, 0),
            note="On Databricks, dropping it rewrites shredded files.",
        ),
        notes=(
            (
                "Delta 4.4.0 adds this name, not variantShredding, for "
                "delta.enableVariantShredding=true."
            ),
            (
                "Delta Spark requires no other feature for it; Delta Kernel (Java) also requires "
                "variantType."
            ),
        ),
        sources=(
            "TableFeature.scala VariantShreddingPreviewTableFeature",
            "TableFeatures.java VariantShreddingPreviewTableFeature",
            _SHREDDING_PAGE,
        ),
    ),
)

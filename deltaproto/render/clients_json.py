"""The client catalog as JSON."""

from __future__ import annotations

from typing import Any

from deltaproto.clients.feature_matrix import feature_rows
from deltaproto.clients.model import Access, Client, ProtocolGate, Range
from deltaproto.clients.resolve import ClientAtVersion


def client_fields(client: Client) -> dict[str, Any]:
    """Return one client as JSON."""
    return {
        "id": client.id,
        "name": client.name,
        "aliases": list(client.aliases),
        "versions": client.versions,
        "ranges": [_range_fields(each) for each in client.ranges],
        "measured": [
            {"version": each.start, "paths": [path.name for path in each.paths]}
            for each in client.measured
        ],
    }


def candidate_fields(candidate: ClientAtVersion) -> dict[str, Any]:
    """Return one version of a client as JSON."""
    fields = client_fields(candidate.client)
    each = candidate.range
    fields["ranges"] = [] if each is None else [_range_fields(each)]
    fields["version"] = candidate.reference.version
    fields["known"] = each is not None
    fields["matrix"] = [
        {
            "path": path.name,
            "feature": row.feature,
            "kind": str(row.kind),
            "read": None if row.read is None else str(row.read),
            "write": None if row.write is None else str(row.write),
        }
        for path in candidate.paths
        for row in feature_rows(path)
    ]
    return fields


def _range_fields(each: Range) -> dict[str, Any]:
    return {
        "from": each.start,
        "before": each.end,
        "newest": each.newest,
        "paths": [
            {
                "name": path.name,
                "read": _gate_fields(path.read),
                "write": _gate_fields(path.write),
                "access": [str(access) for access in Access if access in path.access],
                "known_bad": [
                    {
                        "features": sorted(bad.features),
                        "access": sorted(bad.access),
                        "what": bad.what,
                        "reference": bad.reference,
                        "fails": bad.fails,
                        "where": str(bad.where),
                        "ungated": bad.ungated,
                        "pairs": [list(pair) for pair in sorted(bad.pairs)],
                        "disputed": bad.disputed,
                    }
                    for bad in path.known_bad
                ],
                "hazards": [
                    {
                        "hazard": hazard,
                        "access": str(access),
                        "verdict": str(handling.verdict),
                        "what": handling.what or None,
                        "reference": handling.reference or None,
                    }
                    for (hazard, access), handling in sorted(path.hazards.items())
                ],
            }
            for path in each.paths
        ],
        "requires_complete_protocols": each.whole,
        "partial": each.partial,
        "catalog_only": sorted(each.catalog_only),
        "confidence": str(each.confidence),
        "evidence": [proof._asdict() for proof in each.evidence],
        "note": each.note or None,
    }


def _gate_fields(gate: ProtocolGate | None) -> dict[str, Any] | None:
    if gate is None:
        return None
    return {
        "legacy_versions": sorted(gate.legacy),
        "features": None if gate.features is None else sorted(gate.features),
        "only_unused": sorted(gate.unused),
        "only_implied_and_unused": sorted(gate.legacy_unused),
        "unchecked": "all" if gate.unchecked is None else sorted(gate.unchecked),
        "modes": {feature: sorted(modes) for feature, modes in gate.modes.items()},
        "reader_versions": None if gate.readers is None else sorted(gate.readers),
        "reader_features": None if gate.reader_features is None else sorted(gate.reader_features),
    }

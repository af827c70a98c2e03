"""What several recipes say."""

from __future__ import annotations

DELETE = "delete from {t} where id in (3, 14)"
LOST = (3, 14)
VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
PART = (("part", "string", "if(id % 2 = 0, 'even', 'odd')"),)
PARTITIONED = "partitioned by (part)"
PART_IS = (("part", "=", "even"),)

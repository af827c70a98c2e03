"""The `log` reader: protocol, metadata and domains straight from `_delta_log`."""

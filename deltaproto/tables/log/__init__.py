"""The `log` reader: protocol, metadata and domains directly from `_delta_log`."""

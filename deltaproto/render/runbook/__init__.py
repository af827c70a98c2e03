"""The release runbook of one or many plans."""

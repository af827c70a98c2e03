"""Renderers: one module per output format. They format results and make no decisions."""

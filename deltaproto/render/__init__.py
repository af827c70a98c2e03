"""Renderers: one module per output format, fed with results, deciding nothing."""

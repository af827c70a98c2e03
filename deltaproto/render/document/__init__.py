"""Documents: blocks, written once, and a renderer for each format."""

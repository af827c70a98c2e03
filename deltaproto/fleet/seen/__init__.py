"""The clients that were seen to use tables."""

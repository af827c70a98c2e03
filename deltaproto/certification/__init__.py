"""Measuring what a real client does with each feature, on tables with known answers."""

"""Certification: measures how a real client handles each feature, on tables with known contents."""

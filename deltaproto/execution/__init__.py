"""Carrying out a plan: warned, gated, step by step, verified, on record."""

"""Checking tables against declared clients and a policy, from a fresh look or a saved one."""

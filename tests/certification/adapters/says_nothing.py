"""Answers every question with nothing."""


def rows(table, version=None, where=None):
    return None


def count(table):
    return None


def schema(table):
    return None


def append(table, rows):
    return None

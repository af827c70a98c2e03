"""The Python API. Everything is imported from `deltaproto` itself.

The functions do what the commands of the same names do, but return results instead of printing
them.
"""

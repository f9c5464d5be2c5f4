"""Kernels that run as guests: user-mode Linux, built from Debian's sources or from a tree of the user's.

`cache` holds what was built, `debian` and `trees` bring sources, `building` makes a program of them.
"""

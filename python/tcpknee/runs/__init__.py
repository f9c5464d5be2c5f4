"""Scenarios planned and run: engines, the folder of a run, its tables, its results, and what is printed of them."""

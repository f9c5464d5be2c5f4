"""`knee fleet watch`: an experiment is followed while it runs, and ended where a guard is crossed.

`guards.py` reads guards and judges them, `following.py` looks at the data again and again.
"""

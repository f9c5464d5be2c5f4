"""`knee assign`: which connections of a host get which algorithm.

`arms.py` reads what is compared, `designs.py` says which share holds when, `plan.py` puts both together, `running.py`
has the kernel do it and writes down what was done, and `heir.py` leaves that to the user who called sudo.
"""

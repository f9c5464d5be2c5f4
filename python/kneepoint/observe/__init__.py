"""Live hosts: recordings of their sockets and counters."""

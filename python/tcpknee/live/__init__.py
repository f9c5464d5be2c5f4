"""Live hosts: sockets watched, recorded and traced, and served to Prometheus."""

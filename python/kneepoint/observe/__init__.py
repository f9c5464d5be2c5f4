"""What runs on this machine, looked on at: live connections, queues and counters, and recordings of them."""

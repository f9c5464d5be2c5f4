"""What runs on this machine, looked on at: live connections and queues."""

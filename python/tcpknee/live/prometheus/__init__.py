"""`knee export --prometheus`: sums over every socket of this host, for Prometheus to scrape."""

"""Recorded hosts as evidence: connections, cohorts and their comparison."""

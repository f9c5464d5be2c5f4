"""Many connections of many hosts: cohorts compared, experiments assigned and judged, changes predicted."""

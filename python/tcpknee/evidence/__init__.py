"""What measured values show: metrics, intervals, verdicts and expressions. Of cells and runs it knows nothing."""

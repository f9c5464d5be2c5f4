"""Predictions: paths fitted to recorded connections, and other algorithms simulated on them."""

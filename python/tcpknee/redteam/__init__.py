"""The search for scenarios in which an algorithm does badly: drawn, mutated, made small, and told with their seed."""

"""The gate: what an algorithm does on the rows of a suite, beside another one, and whether that is well."""

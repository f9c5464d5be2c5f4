"""What this host's operations cost: measured, fitted to the host model, held against settings that were left out."""

"""Helpers on hosts of the user's (`crates/remote`): brought there over ssh, spoken to, ended."""

"""Folders of tables, whatever wrote them."""

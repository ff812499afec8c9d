"""Runs that write their results as plain data; drawing them is the report's work."""

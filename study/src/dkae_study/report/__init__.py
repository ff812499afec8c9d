"""Reads results, draws, writes pages; runs no model."""

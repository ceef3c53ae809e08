"""Encoding of tables with mixed column types, and decoding."""

"""The version, which every pickle carries."""

__version__ = "0.1.0"

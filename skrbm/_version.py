"""Version of the package, also stored in pickles."""

__version__ = "0.1.0"

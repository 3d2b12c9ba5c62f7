"""Differentially private continual releases over dynamic PostgreSQL tables."""

__version__ = "0.1.0"

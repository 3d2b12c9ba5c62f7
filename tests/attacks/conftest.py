"""Attacks look at the same tracked table as the integration tests do."""

from tests.integration.conftest import analyst, cases, make_cases, ready, tracked

__all__ = ["analyst", "cases", "make_cases", "ready", "tracked"]

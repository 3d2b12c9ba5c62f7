"""One tree of errors, each with an SQLSTATE of class DP.

A message says what is wrong and where; a hint says what to do about it. Neither ever holds a value that comes from a table:
messages reach clients and server logs, where nothing private may appear.
"""

from __future__ import annotations


class DbextError(Exception):
    """Something dbext refuses or cannot do. `sqlstate` is a promise to callers: change it only with a reason."""

    sqlstate = "DP000"

    def __init__(self, message: str, *, hint: str | None = None, detail: str | None = None):
        super().__init__(message)
        self.message, self.hint, self.detail = message, hint, detail


class BadArgument(DbextError):
    """An argument is outside its range or malformed."""

    sqlstate = "DP001"


class UnknownObject(DbextError):
    """A table, column, release, budget or constraint that does not exist or is not tracked."""

    sqlstate = "DP002"


class NotSupported(DbextError):
    """A kind of table, key or statistic that dbext cannot protect."""

    sqlstate = "DP003"


class AlreadyExists(DbextError):
    """A name that is taken, or a table that is tracked already."""

    sqlstate = "DP004"


class NotPermitted(DbextError):
    """The caller lacks a role or a right on the source table."""

    sqlstate = "DP005"


class DeclarationRefused(DbextError):
    """SQL text outside what can be released privately. `position` is the 1-based character offset of the culprit, if known."""

    sqlstate = "DP010"

    def __init__(self, message: str, *, position: int | None = None, hint: str | None = None):
        detail = None if position is None else f"at character {position} of the text"
        super().__init__(message, hint=hint, detail=detail)
        self.position = position


class BudgetExceeded(DbextError):
    """A charge that the budget cannot take. All three figures depend on public data only."""

    sqlstate = "DP020"

    def __init__(self, budget: str, *, spent: object, asked: object, left: object):
        super().__init__(
            f'budget "{budget}" cannot take this: spent or reserved {spent}, asked {asked}, left {left} (epsilon)',
            hint="Ask for a smaller epsilon, use a stored answer, or let the DBA review the budget with dp_set_budget.",
        )
        self.spent, self.asked, self.left = spent, asked, left


class ConstraintTooLoose(BudgetExceeded):
    """Limits under which what is spent and reserved already no longer fits the budget."""

    def __init__(self, budget: str, *, needed: object, epsilon: object):
        super().__init__(budget, spent=needed, asked=0, left=0)
        self.message = (
            f'under these limits budget "{budget}" would need epsilon {needed} for what is spent and reserved already, and has {epsilon}'
        )
        self.hint = "Choose stricter limits, drop releases, or let the DBA review the budget with dp_set_budget."


class AllowanceExceeded(BudgetExceeded):
    """A charge that the caller's own allowance on the table cannot take."""

    def __init__(self, role: str, table: str, *, spent: object, asked: object, left: object):
        super().__init__(role, spent=spent, asked=asked, left=left)
        self.message = (
            f'the allowance of role "{role}" on table {table} cannot take this: '
            f"spent or reserved {spent}, asked {asked}, left {left} (epsilon)"
        )
        self.hint = "Ask for a smaller epsilon, use a stored answer, or let the DBA review the allowance with dp_set_allowance."


class KeyDeltaExceeded(DbextError):
    """Group keys taken from the data whose delta the budget's `key_delta` does not cover. Both figures depend on public data only."""

    sqlstate = "DP020"

    def __init__(self, budget: str, *, needed: object, key_delta: object):
        super().__init__(
            f'budget "{budget}" sets delta {key_delta} aside for group keys taken from the data, and {needed} is needed',
            hint="Ask for a smaller key_delta, list the keys with groups =>, or let the DBA review dp_set_budget(..., key_delta => ...).",
        )


class KeyAllowanceExceeded(KeyDeltaExceeded):
    """Group keys taken from the data whose delta the caller's own allowance on the table does not cover."""

    def __init__(self, role: str, table: str, *, needed: object, key_delta: object):
        super().__init__(role, needed=needed, key_delta=key_delta)
        self.message = (
            f'the allowance of role "{role}" on table {table} holds key_delta {key_delta} for group keys taken from the data, '
            f"and {needed} is needed with all that it has declared"
        )
        self.hint = (
            "Ask for a smaller key_delta, list the keys with groups =>, or let the DBA review the allowance with "
            "dp_set_allowance(..., key_delta => ...)."
        )


class UnboundedLoss(DbextError):
    """A release whose loss no constraint and no horizon bounds."""

    sqlstate = "DP021"


class WindowNotSealed(DbextError):
    """A window that ends in the future or in a tick that is not sealed yet."""

    sqlstate = "DP030"


class SealRefused(DbextError):
    """A seal asked for in a transaction, isolation level or cluster in which it could lose or double mutations."""

    sqlstate = "DP031"


class HistoryLost(DbextError):
    """A database that remembers less than what has left it: it was restored, rolled back or copied."""

    sqlstate = "DP032"


class SecondSessionUnavailable(DbextError):
    """The autonomous session that commits charges cannot be had; nothing was spent."""

    sqlstate = "DP040"


class VersionMismatch(DbextError):
    """Python package and extension script are of different versions."""

    sqlstate = "DP050"


class HorizonReached(DbextError):
    """A release that has published every period of its horizon."""

    sqlstate = "DP060"


class TargetRefused(DbextError):
    """A release target that is not what this database left there."""

    sqlstate = "DP070"


class InternalError(DbextError):
    """A fault of dbext itself."""

    sqlstate = "DP099"

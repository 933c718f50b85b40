"""Who calls, what they may, what they used: clients, limits, budgets, ledger, prices.

`Accounts` lives as long as the process, a `Bill` and an `Allowance` as long as a request.
"""

from middleware.accounts.accounts import Accounts, open_accounts
from middleware.accounts.bill import Bill

__all__ = ("Accounts", "Bill", "open_accounts")

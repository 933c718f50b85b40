"""Who calls, what they may, what they used: clients, limits, budgets, ledger, prices."""

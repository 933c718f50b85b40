"""Accounts: clients, limits, prices, the ledger."""

"""The formats of calls that models were trained on, as a table."""

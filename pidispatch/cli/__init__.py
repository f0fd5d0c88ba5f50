"""The command line: one file a verb, and no rule that another room could own."""

"""Parts of the long fault run (`tools/soak.py`): what it plays, how it counts, and what it judges by."""

"""What bounds spend: the windows runs are counted in, the caps on them, and the cap on tokens.

It keeps the promise that no cap is passed, however many workers ask at once: what is asked here is answered by the
store in one step (docs/explanation/money.md).
"""

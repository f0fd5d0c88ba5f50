"""The forges: what each of them sends, what it is asked, and how it is asked.

Promise: what is unsigned is not read, what a forge does not say is never taken for a yes, and nothing of a stranger's
text leaves here but in the fields of an `Event`. Nothing here knows of the queue.
"""

"""What starts jobs by itself: the triggers file, and the schedules in it with their occurrences.

Promise: a file is taken as a whole or refused as a whole, nothing in it is accepted and then ignored, and an occurrence
of a schedule has one id, however many schedulers see it fall due. An event fires at most one rule. Nothing here reads
a clock, and only the writer of marks a file.
"""

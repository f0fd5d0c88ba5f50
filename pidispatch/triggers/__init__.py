"""What starts jobs by itself: the triggers file, and the schedules in it with their occurrences.

Promise: a file is taken as a whole or refused as a whole, nothing in it is accepted and then ignored, and an occurrence
of a schedule has one id, however many schedulers see it fall due. Nothing here reads a file or a clock.
"""

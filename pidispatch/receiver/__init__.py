"""What hears the forges: from a signed request to a job in the store, or a word why there is none.

Promise: what is answered with 202 will be run once, what is not authentic is not read, and an event that no rule wants
is answered at once and told in the log. Nothing here runs anything.
"""

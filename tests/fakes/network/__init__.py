"""Both ends of a network, on the standard library alone: a probe that tries ways out, and servers to be reached."""

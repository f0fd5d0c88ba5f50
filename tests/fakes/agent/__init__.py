"""Stub agents: they speak pi's RPC protocol to the real runner and misbehave in one chosen way each."""

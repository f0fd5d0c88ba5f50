"""Stand-ins for services outside our control. Each one is a small program of its own that speaks the real protocol."""

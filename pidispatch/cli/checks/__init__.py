"""What `pi-dispatch check` looks at: one small function a row, each of which stands alone."""

"""What a job must pass before its attempt: each gate admits, defers or refuses, and holds what it gave till the end."""

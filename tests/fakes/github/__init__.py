"""A GitHub for the tests, on real sockets, and deliveries as its webhooks send them.

`edge.Edge` is the whole of it: repositories that git clones and pushes to, REST and GraphQL as PyGithub, `gh` and an
agent use them, Apps with their tokens, and webhooks of what happens. `server.GitHubServer` is a table of answers to the
one question whose word counts. What both say is held against GitHub's own descriptions.
"""

from typing import Final

#: Where the API and the pages stand in the box.
HOSTS: Final = ("api.github.com", "github.com")

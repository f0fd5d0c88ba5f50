"""A GitHub for the tests: the REST calls that are made, on a real socket, and deliveries as its webhooks send them."""

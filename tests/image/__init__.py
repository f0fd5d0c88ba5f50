"""Images for tests and the demo, assembled without a registry: from Debian's mirror, npm and the product's own code."""

"""GitHub, and GitHub Enterprise Server: its deliveries, and what it is asked about them.

https://docs.github.com/en/webhooks/webhook-events-and-payloads and https://docs.github.com/en/rest
"""

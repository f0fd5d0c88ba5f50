"""Everything that proves the product: unit, integration and end-to-end tests, and the fakes they share."""

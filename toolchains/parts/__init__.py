"""Third-party code and data inside wheels and bundles: the table, the licenses, and the bill of materials."""

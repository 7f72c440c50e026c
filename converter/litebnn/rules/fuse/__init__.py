"""Binary layers take in the ops around them, and the remaining float ops work on fewer values."""

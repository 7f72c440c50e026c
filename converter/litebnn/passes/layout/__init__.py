"""Phase 1: the layout of channel-first exporters goes."""

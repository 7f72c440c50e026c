"""Phase 1: transposes and reshapes of channel-first exporters are moved and cancelled."""

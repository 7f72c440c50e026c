"""Phase 5: thresholds that no layer has absorbed become a difference and its sign."""

"""Binary layers fuse the ops next to them, and the remaining float ops move to smaller tensors."""

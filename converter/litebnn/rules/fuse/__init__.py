"""The rules of this phase fuse the ops next to binary layers into them, and move the remaining float ops to smaller
tensors."""

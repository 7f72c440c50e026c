"""The rules in this folder fuse the ops next to binary layers into them, and move the remaining float ops to smaller
tensors."""

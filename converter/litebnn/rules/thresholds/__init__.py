"""The rules in this folder recognize signs, and fold their thresholds into layers that absorb them without cost."""

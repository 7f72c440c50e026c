"""The rules of this phase recognize signs, and fold their thresholds into layers that absorb them without cost."""

"""The forms of many exporters become one form, and equal or dead ops go away."""

"""The rules in this folder bring the forms of many exporters to one form, and remove equal or dead ops."""

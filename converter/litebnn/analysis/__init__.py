"""This package determines facts about tensors and ops, each in one place. The rules only ask for these facts."""

"""On request, before the last phase: ops that Larq's own runtime cannot read become ops that it can."""

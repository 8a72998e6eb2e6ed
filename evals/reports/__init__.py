"""Reports: what people and machines read of a run. A new report is one new file."""

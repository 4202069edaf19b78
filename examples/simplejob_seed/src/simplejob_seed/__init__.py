"""The guide's SimpleJob, defects included."""

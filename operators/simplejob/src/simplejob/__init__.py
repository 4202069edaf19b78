"""SimpleJob: run a command, again if it fails, and tell how far it is."""

"""MyOwnShell: keeps pods alive into which a person can open a shell."""

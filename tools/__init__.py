"""What maintainers of Flyball run. Every file here is a program; nothing of it is in the wheel."""

"""What people know about their table."""

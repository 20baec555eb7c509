"""Programs that follow a slot with one library each, and report what they find."""

"""Model folders and how far their confidences may be believed."""

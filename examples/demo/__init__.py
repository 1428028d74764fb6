"""Models, data and capability functions of the demo; nothing here imports the project's packages."""

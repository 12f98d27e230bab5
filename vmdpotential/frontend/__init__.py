"""Interfaces to commands: the shell program, declarations and dialogs for viewers, and installing their plugins."""

"""Adapters that bring the commands of this package into viewers, and what registers as other packages' plugins do."""

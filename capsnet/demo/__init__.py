"""The web page: one file a panel, each with `build()` for its components and pure functions for events."""

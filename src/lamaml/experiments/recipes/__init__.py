"""The paper's settings as TOML files; how they are read, changed and listed."""

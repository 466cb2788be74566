"""The store: immutable Parquet parts and the DuckDB catalog over them; reading and writing it."""

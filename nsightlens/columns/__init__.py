"""The columns of one profile on their way from its reader to Parquet."""

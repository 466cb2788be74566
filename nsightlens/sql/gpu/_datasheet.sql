-- The datasheet of a GPU by its product name: one row, NULL where none is known.
-- @scope run
-- @param  product    Product name as a tool prints it, or the name of a datasheet; NULL is none.
-- @column datasheet  Row of gpu_peaks, by its name.
CREATE MACRO _datasheet(product := NULL) AS TABLE
SELECT min(name) AS datasheet FROM gpu_peaks WHERE regexp_matches(product, pattern, 'i') OR lower(product) = lower(name);

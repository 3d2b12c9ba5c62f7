-- name: of_table
-- The bounds declared for the columns of a table.
SELECT b.position, b.low::text AS low, b.high::text AS high, b.grid::text AS grid
FROM dbext_private.column_bounds AS b WHERE b.table_id = $1::integer

-- name: declare
-- Declare the bounds of a column, in place of earlier ones.
INSERT INTO dbext_private.column_bounds (table_id, position, low, high, grid)
VALUES ($1::integer, $2::integer, $3::numeric, $4::numeric, $5::numeric)
ON CONFLICT (table_id, position) DO UPDATE SET low = excluded.low, high = excluded.high, grid = excluded.grid

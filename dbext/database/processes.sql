-- name: of_table
-- The stated models of a table.
SELECT p.column_name, p.type_name, p.transition::text AS transition FROM dbext_private.process AS p WHERE p.table_id = $1::integer
ORDER BY p.column_name, p.type_name

-- name: set
-- State a model, in place of the one before.
INSERT INTO dbext_private.process (table_id, column_name, type_name, transition, set_by)
VALUES ($1::integer, $2::text, $3::text, $4::jsonb, $5::text)
ON CONFLICT (table_id, column_name, type_name)
DO UPDATE SET transition = excluded.transition, set_by = excluded.set_by, set_at = clock_timestamp()

-- name: forget
-- Forget a model.
DELETE FROM dbext_private.process AS p WHERE p.table_id = $1::integer AND p.column_name = $2::text AND p.type_name = $3::text

-- name: modelled
-- Releases of tables that have a model.
SELECT r.name FROM dbext_private.release AS r
WHERE r.state <> 'dropped' AND EXISTS (SELECT FROM dbext_private.process AS p WHERE p.table_id = r.table_id) ORDER BY r.name

-- name: answers
-- What questions about a table were charged.
SELECT l.charges::text AS charges FROM dbext_private.ledger AS l WHERE l.table_id = $1::integer AND l.kind = 'question' ORDER BY l.ledger_no

-- name: ends
-- The moments that end consecutive ticks, as text.
SELECT e.moment::text AS moment FROM unnest(dbext_private.tick_ends($1::integer, $2::bigint, $3::bigint)) WITH ORDINALITY AS e(moment, place)
ORDER BY e.place

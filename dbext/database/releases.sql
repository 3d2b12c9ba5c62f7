-- name: taken
-- Whether a release, or another relation where its table and view would be, has this name.
SELECT EXISTS (SELECT FROM dbext_private.release AS r WHERE r.name = $1::text AND r.state <> 'dropped')
    OR EXISTS (SELECT FROM pg_class AS c
               WHERE c.relnamespace = 'dp_release'::regnamespace AND c.relname IN ($1::text, $1::text || '_rounded')) AS taken

-- name: next_number
-- A number for a release that is about to be declared.
SELECT nextval('dbext_private.release_release_id_seq') AS number

-- name: add
-- Record a declared release under its number.
INSERT INTO dbext_private.release (release_id, name, table_id, declaration, plan, labels, state, next_end, summed_through, created_by, horizon_end)
OVERRIDING SYSTEM VALUE
VALUES ($8::integer, $1::text, $2::integer, $3::text, $4::jsonb, (
    SELECT jsonb_object_agg(e.oid, e.enumlabel)
    FROM pg_enum AS e WHERE e.enumtypid IN (SELECT c.type_id FROM dbext_private.recorded_columns($2::integer) AS c)
), 'active', $5::bigint, $6::bigint, $7::text, $9::bigint)

-- name: add_keys
-- Freeze the group keys of a release, in order of cell; width columns make one key.
WITH given AS MATERIALIZED (SELECT $2::text[] AS key_values)
INSERT INTO dbext_private.release_key (release_id, cell, key_values, shown_from)
SELECT $1::integer, i, g.key_values[(i - 1) * $3::integer + 1 : i * $3::integer], $5::bigint
FROM given AS g, generate_series(1, $4::integer) AS i

-- name: by_name
-- A release that was not dropped.
SELECT r.release_id, r.name, r.table_id, r.declaration, r.plan::text AS plan, r.state, r.created_by, r.next_period, r.next_answer
FROM dbext_private.release AS r WHERE r.name = $1::text AND r.state <> 'dropped'

-- name: lock
-- Take the row of a release: whoever publishes or drops it holds it.
SELECT r.release_id, r.name, r.table_id, r.plan::text AS plan, r.state, r.next_period, r.next_answer, r.next_end, r.summed_through, r.created_by
FROM dbext_private.release AS r WHERE r.release_id = $1::integer FOR UPDATE

-- name: try_lock
-- Take the row of a release unless someone has it: whoever drops a release and leaves his transaction open stops no other.
SELECT r.release_id, r.name, r.table_id, r.plan::text AS plan, r.state, r.next_period, r.next_answer, r.next_end, r.summed_through, r.created_by
FROM dbext_private.release AS r WHERE r.release_id = $1::integer FOR UPDATE SKIP LOCKED

-- name: relabelled
-- Whether a label of the table's enum columns was renamed since the release was declared. In a restored database labels have other OIDs.
SELECT r.labels IS NOT NULL AND EXISTS (
    SELECT FROM jsonb_each_text(r.labels) AS b JOIN pg_enum AS e ON e.oid = b.key::oid
    WHERE e.enumlabel <> b.value AND e.enumtypid IN (SELECT c.type_id FROM dbext_private.recorded_columns(r.table_id) AS c)
) AS relabelled
FROM dbext_private.release AS r WHERE r.release_id = $1::integer

-- name: advance
-- Note what was drawn.
UPDATE dbext_private.release AS r
SET next_period = $2::bigint, next_end = $3::bigint, summed_through = $4::bigint, state = $5::text, horizon_end = $6::bigint
WHERE r.release_id = $1::integer

-- name: answered
-- Note what was written into the release table.
UPDATE dbext_private.release AS r SET next_answer = $2::bigint, last_end = $3::bigint, last_error = NULL
WHERE r.release_id = $1::integer

-- name: drop
-- End a release for good; its name becomes free.
UPDATE dbext_private.release AS r SET state = 'dropped', next_end = NULL WHERE r.release_id = $1::integer

-- name: collations
-- Collations of the columns of change_N by position: what changes are compared under, whatever the tracked table says today.
SELECT c.position, quote_ident(n.nspname) || '.' || quote_ident(l.collname) AS collation
FROM dbext_private.tracked_column AS c
JOIN pg_attribute AS a ON a.attrelid = format('dbext_private.change_%s', c.table_id)::regclass
    AND a.attname = format(CASE WHEN c.is_unit THEN 'key_%s' ELSE 'new_%s' END, c.position)
JOIN pg_collation AS l ON l.oid = a.attcollation
JOIN pg_namespace AS n ON n.oid = l.collnamespace
WHERE c.table_id = $1::integer

-- name: public_column
-- Columns marked public under this name, of ordinary tables that exist.
SELECT p.schema_name, p.table_name, p.column_name
FROM dbext_private.public_column AS p
JOIN pg_namespace AS n ON n.nspname = p.schema_name
JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = p.table_name AND c.relkind = 'r'
WHERE p.table_name = $1::text AND p.column_name = $2::text AND ($3::text IS NULL OR p.schema_name = $3::text)

-- name: bound_to
-- The kinds of the relations that a view of schema dbext_private is bound to.
SELECT DISTINCT c.oid, c.relkind::text AS kind
FROM pg_class AS v JOIN pg_rewrite AS w ON w.ev_class = v.oid
JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> v.oid
JOIN pg_class AS c ON c.oid = d.refobjid
WHERE v.relnamespace = 'dbext_private'::regnamespace AND v.relname = $1::text

-- name: mark_public
-- Note that a column's values are public.
INSERT INTO dbext_private.public_column (schema_name, table_name, column_name)
VALUES ($1::text, $2::text, $3::text) ON CONFLICT DO NOTHING

-- name: column_of_table
-- What a table and one of its columns are.
SELECT n.nspname AS schema_name, c.relname AS table_name, c.relkind::text AS kind, a.attname AS column_name,
       pg_has_role(dbext_private.caller(), c.relowner, 'USAGE') AS owned,
       has_schema_privilege('dbext_owner', n.oid, 'USAGE') AS reachable
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = $2::text AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.oid = $1::oid

-- name: readable
-- Whether the caller may read a column of a release table; NULL when there is no such table or column.
SELECT has_schema_privilege(dbext_private.caller(), c.relnamespace, 'USAGE')
    AND has_column_privilege(dbext_private.caller(), c.oid, a.attnum, 'SELECT') AS readable
FROM (VALUES (1)) AS one LEFT JOIN pg_class AS c ON c.relnamespace = 'dp_release'::regnamespace AND c.relname = $1::text AND c.relkind = 'r'
LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = $2::text AND NOT a.attisdropped

-- name: keys
-- The frozen group keys of a release, in order of cell.
SELECT k.key_values FROM dbext_private.release_key AS k WHERE k.release_id = $1::integer ORDER BY k.cell

-- name: is_gapped
-- Whether schema changes kept mutations of a range from being captured; a NULL start reaches back to the beginning.
SELECT EXISTS (
    SELECT FROM dbext_private.schema_event AS e WHERE e.table_id = $1::integer AND e.from_tick <= $3::bigint
        AND (e.through_tick IS NULL OR e.through_tick > coalesce($2::bigint, $3::bigint - 1))) AS gapped

-- name: hidden_cells
-- Cells of a release that have no rows yet.
SELECT k.cell FROM dbext_private.release_key AS k WHERE k.release_id = $1::integer AND k.shown_from IS NULL ORDER BY k.cell

-- name: shown_cells
-- Cells of a release that have rows, and the first period with one.
SELECT k.cell, k.shown_from FROM dbext_private.release_key AS k WHERE k.release_id = $1::integer AND k.shown_from IS NOT NULL ORDER BY k.cell

-- name: show_keys
-- Let cells have rows, each from a period on.
UPDATE dbext_private.release_key AS k SET shown_from = s.period
FROM unnest($2::integer[], $3::bigint[]) AS s(cell, period) WHERE k.release_id = $1::integer AND k.cell = s.cell AND k.shown_from IS NULL

-- name: cells
-- How many cells a release has.
SELECT count(*) AS cells FROM dbext_private.release_key AS k WHERE k.release_id = $1::integer

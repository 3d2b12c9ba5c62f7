-- name: default_target
-- Where releases go that are declared from now on.
SELECT t.name FROM dbext_private.release_target AS t

-- name: set_default
-- Let every release that is declared from now on go to a target.
INSERT INTO dbext_private.release_target (name) VALUES ($1::text) ON CONFLICT (only_row) DO UPDATE SET name = excluded.name

-- name: unset_default
-- Let releases that are declared from now on be read here.
DELETE FROM dbext_private.release_target

-- name: others
-- Targets of other name that any release goes to, the one given left out.
SELECT r.target FROM dbext_private.release AS r WHERE r.target <> $1::text AND r.release_id IS DISTINCT FROM $2::integer
UNION SELECT t.name FROM dbext_private.release_target AS t WHERE t.name <> $1::text AND $2::integer IS NOT NULL

-- name: living
-- All releases that were not dropped, in order of declaration.
SELECT r.release_id, r.name FROM dbext_private.release AS r WHERE r.state <> 'dropped' ORDER BY r.release_id

-- name: set_target
-- Note where a release goes.
UPDATE dbext_private.release AS r SET target = $2::text WHERE r.release_id = $1::integer

-- name: relations
-- What readers of a release read: its table, its companion view, and reports if they are published; columns are quoted, none for views.
SELECT c.relname AS name, CASE WHEN c.relkind <> 'v' THEN string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) END AS columns
FROM dbext_private.release AS r JOIN pg_class AS c ON c.relnamespace = 'dp_release'::regnamespace
    AND ((c.relname = r.name AND c.relkind IN ('r', 'p')) OR (c.relname = r.name || '_rounded' AND c.relkind = 'v')
        OR (c.relname = r.name || '_reports' AND c.relkind = 'r' AND (r.plan ->> 'publish_reports')::boolean))
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE r.release_id = $1::integer
GROUP BY c.oid

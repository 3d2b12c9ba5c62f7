-- name: caller
-- Who calls, and whether the roles of this extension allow asking and administering.
SELECT who.name::text AS name, dbext_private.is_admin(who.name) AS admin, dbext_private.is_analyst(who.name) AS analyst,
       dbext_private.is_admitted(who.name) AS admitted
FROM (SELECT dbext_private.caller() AS name) AS who

-- name: unreadable
-- Columns among the given positions that the caller may not read; one row without a name when he may read nothing of the table.
-- With $3 what dp_grant gave counts like SELECT. CASE: other columns may be gone, and PostgreSQL would fail on the privilege of one.
-- The relation decides, not its name: whoever makes a new table of the name of one that is gone has no rights to its history.
WITH target AS (
    SELECT t.table_id, c.oid AS relation, c.relnamespace AS schema, dbext_private.caller() AS who
    FROM dbext_private.tracked_table AS t LEFT JOIN pg_class AS c ON c.oid = t.relation
    WHERE t.table_id = $1::integer
)
SELECT c.column_name
FROM target AS t JOIN dbext_private.tracked_column AS c USING (table_id)
WHERE CASE WHEN c.position = ANY ($2::integer[]) THEN NOT coalesce((
        SELECT has_column_privilege(t.who, t.relation, a.attnum, 'SELECT') FROM pg_attribute AS a
        WHERE a.attrelid = t.relation AND a.attname = c.column_name AND NOT a.attisdropped), false) END
    AND NOT ($3::boolean AND t.relation IS NOT NULL AND dbext_private.is_granted(t.table_id, t.who, c.position))
UNION ALL
SELECT NULL FROM target AS t
WHERE NOT coalesce(has_any_column_privilege(t.who, t.relation, 'SELECT') AND has_schema_privilege(t.who, t.schema, 'USAGE'), false)
    AND NOT ($3::boolean AND t.relation IS NOT NULL AND dbext_private.is_granted(t.table_id, t.who, NULL))

-- name: home
-- Whether this is the cluster, database and timeline in which the ledger and the noise are all there is; and what witnesses say of it.
SELECT dbext_private.is_home() AS home, t.behind, t.vouched,
       EXISTS (SELECT FROM dbext_private.cluster_identity) OR EXISTS (SELECT FROM dbext_private.tracked_table) AS began
FROM dbext_private.trust() AS t

-- name: isolation
-- The isolation level of this transaction.
SELECT current_setting('transaction_isolation') AS isolation

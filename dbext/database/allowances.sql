-- name: role
-- A role of the cluster by its name.
SELECT r.rolname::text AS name FROM pg_roles AS r WHERE r.rolname = $1::text

-- name: set_allowance
-- Say what a role may spend on a table.
INSERT INTO dbext_private.allowance AS a (table_id, role_name, epsilon, key_delta)
VALUES ($1::integer, $2::text, $3::numeric, coalesce($4::numeric, 0))
ON CONFLICT (table_id, role_name) DO UPDATE SET epsilon = excluded.epsilon, key_delta = coalesce($4::numeric, a.key_delta)
RETURNING a.key_delta::text AS key_delta

-- name: end_allowance
-- Let a role spend as much as the budget holds, whatever it was called when that was not so.
DELETE FROM dbext_private.allowance AS a WHERE a.table_id = $1::integer AND a.role_name = ANY (dbext_private.names_of($2::text))

-- name: note_role
-- Remember what a role that spends is called now.
INSERT INTO dbext_private.role_identity AS i (first_name, role_name, role_oid)
SELECT coalesce((SELECT k.first_name FROM dbext_private.role_identity AS k WHERE k.role_oid = r.oid ORDER BY k.role_name LIMIT 1), r.rolname),
    r.rolname, r.oid
FROM pg_roles AS r WHERE r.rolname = $1::text
ON CONFLICT (first_name, role_name) DO UPDATE SET role_oid = excluded.role_oid WHERE i.role_oid IS DISTINCT FROM excluded.role_oid

-- name: allowance_of
-- The allowance of a role on a table: its own, that of an earlier name, or, of an analyst who has none, that of all analysts.
SELECT a.epsilon::text AS epsilon, a.key_delta::text AS key_delta FROM dbext_private.allowance AS a
WHERE a.table_id = $1::integer AND (a.role_name = ANY (dbext_private.names_of($2::text))
    OR a.role_name = 'dbext_analyst' AND NOT dbext_private.is_admin($2::name))
ORDER BY a.role_name = $2::text DESC, a.role_name = 'dbext_analyst', a.epsilon LIMIT 1

-- name: charges_of
-- What a role has asked and declared about a table: questions, releases that run, and what dropped ones had published, whoever dropped them.
SELECT l.charges::text AS charges, l.key_checks::text AS key_checks
FROM dbext_private.ledger AS l
LEFT JOIN LATERAL (SELECT r.recorded_by FROM dbext_private.ledger AS r
                   WHERE r.release_id = l.release_id AND r.kind = 'reserve' ORDER BY r.ledger_no LIMIT 1) AS d ON true
WHERE l.table_id = $1::integer AND CASE l.kind
    WHEN 'question' THEN l.recorded_by = ANY ((SELECT dbext_private.names_of($2::text))::text[])
    WHEN 'return' THEN d.recorded_by = ANY ((SELECT dbext_private.names_of($2::text))::text[])
    WHEN 'reserve' THEN l.recorded_by = ANY ((SELECT dbext_private.names_of($2::text))::text[])
        AND NOT EXISTS (SELECT FROM dbext_private.ledger AS b WHERE b.release_id = l.release_id AND b.kind = 'return')
        AND NOT EXISTS (SELECT FROM dbext_private.open_reservation AS o
            WHERE o.release_id = l.release_id AND pg_xact_status(o.declared_in) = 'aborted')
    ELSE false END
ORDER BY l.ledger_no

-- name: allowances
-- Every allowance, and whether it is that of a role, whatever that was called.
SELECT a.table_id, a.role_name, a.epsilon::text AS epsilon, a.key_delta::text AS key_delta, t.budget_id,
    a.role_name = ANY ((SELECT dbext_private.names_of($1::text))::text[]) AS own
FROM dbext_private.allowance AS a JOIN dbext_private.tracked_table AS t USING (table_id) ORDER BY a.table_id, a.role_name

-- name: grant
-- Let a role ask about columns of a table (NULL: about all).
INSERT INTO dbext_private.table_grant (table_id, role_name, positions) VALUES ($1::integer, $2::text, $3::integer[])
ON CONFLICT (table_id, role_name) DO UPDATE SET positions = excluded.positions

-- name: revoke
-- Take that back.
DELETE FROM dbext_private.table_grant AS g WHERE g.table_id = $1::integer AND g.role_name = $2::text

-- name: owned
-- Whether the caller owns a tracked table, which still exists.
SELECT coalesce(pg_has_role(dbext_private.caller(), c.relowner, 'USAGE'), false) AS owned
FROM dbext_private.tracked_table AS t LEFT JOIN pg_class AS c ON c.oid = t.relation WHERE t.table_id = $1::integer

-- name: add_members
-- Freeze the roster of a release: every member reports about every range. width columns make one key.
WITH given AS MATERIALIZED (SELECT $2::text[] AS key_values)
INSERT INTO dbext_private.release_member (release_id, place, key_values)
SELECT $1::integer, i, g.key_values[(i - 1) * $3::integer + 1 : i * $3::integer]
FROM given AS g, generate_series(1, $4::integer) AS i

-- name: name_members
-- Give every member of a release a pseudonym that no key leads to.
UPDATE dbext_private.release_member AS m SET pseudonym = gen_random_uuid() WHERE m.release_id = $1::integer

-- name: store
-- Store the randomised reports of all members about one node, in order of place; a second draw is refused by the primary key.
INSERT INTO dbext_private.report (release_id, node_no, reports) VALUES ($1::integer, $2::bigint, $3::smallint[])

-- name: nodes
-- The stored reports of nodes.
SELECT r.node_no, r.reports FROM dbext_private.report AS r
WHERE r.release_id = $1::integer AND r.node_no = ANY ($2::bigint[]) ORDER BY r.node_no

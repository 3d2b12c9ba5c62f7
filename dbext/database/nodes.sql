-- name: tick_sums
-- Exact effects of the ticks in a range, one array of cells for each tick that has any.
SELECT s.tick, s.sums FROM dbext_private.tick_sum AS s
WHERE s.release_id = $1::integer AND s.tick > $2::bigint AND s.tick <= $3::bigint
ORDER BY s.tick

-- name: store
-- Store noisy nodes, cells of the first, then of the second; a number that exists already is refused by the primary key.
WITH drawn AS MATERIALIZED (SELECT $3::bigint[] AS noisy)
INSERT INTO dbext_private.node (release_id, node_no, noisy)
SELECT $1::integer, n.number, d.noisy[(n.place - 1) * $4::bigint + 1 : n.place * $4::bigint]
FROM drawn AS d, unnest($2::bigint[]) WITH ORDINALITY AS n(number, place)

-- name: committed
-- Stored nodes by number, without those of this very transaction: whatever else is visible is committed.
SELECT n.node_no, n.noisy FROM dbext_private.node AS n
WHERE n.release_id = $1::integer AND n.node_no = ANY ($2::bigint[]) AND n.drawn_in <> pg_current_xact_id()

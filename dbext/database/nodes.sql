-- name: tick_sums
-- Exact effects of the ticks in a range, one array of cells for each tick that has any.
SELECT s.tick, s.sums FROM dbext_private.tick_sum AS s
WHERE s.release_id = $1::integer AND s.stream_no = $2::integer AND s.tick > $3::bigint AND s.tick <= $4::bigint
ORDER BY s.tick

-- name: store
-- Store noisy nodes, cells of the first, then of the second; a number that exists already is refused by the primary key.
INSERT INTO dbext_private.node (release_id, stream_no, node_no, noisy)
SELECT $1::integer, $2::integer, n.number, v.noisy
FROM unnest($3::bigint[]) WITH ORDINALITY AS n(number, place)
JOIN (
    SELECT (u.at - 1) / $5::bigint + 1 AS place, array_agg(u.value ORDER BY u.at) AS noisy
    FROM unnest($4::numeric[]) WITH ORDINALITY AS u(value, at) GROUP BY 1
) AS v ON v.place = n.place

-- name: stored_numbers
-- The stored nodes of a stream.
SELECT n.node_no FROM dbext_private.node AS n WHERE n.release_id = $1::integer AND n.stream_no = $2::integer ORDER BY n.node_no

-- name: widen
-- Append cells to stored nodes, which count as drawn only now: nothing is answered from them before this transaction is committed.
UPDATE dbext_private.node AS n SET noisy = n.noisy || v.noisy, drawn_in = pg_current_xact_id()
FROM unnest($3::bigint[]) WITH ORDINALITY AS m(number, place)
JOIN (
    SELECT (u.at - 1) / $5::bigint + 1 AS place, array_agg(u.value ORDER BY u.at) AS noisy
    FROM unnest($4::numeric[]) WITH ORDINALITY AS u(value, at) GROUP BY 1
) AS v ON v.place = m.place
WHERE n.release_id = $1::integer AND n.stream_no = $2::integer AND n.node_no = m.number

-- name: widen_sums
-- Append cells without any effect to the sums of all ticks.
UPDATE dbext_private.tick_sum AS s SET sums = s.sums || array_fill(0::bigint, ARRAY[$3::integer])
WHERE s.release_id = $1::integer AND s.stream_no = $2::integer

-- name: committed
-- Stored nodes by number, without those of this very transaction: whatever else is visible is committed.
SELECT n.node_no, n.noisy::bigint[] AS noisy FROM dbext_private.node AS n
WHERE n.release_id = $1::integer AND n.stream_no = $2::integer AND n.node_no = ANY ($3::bigint[]) AND n.drawn_in <> pg_current_xact_id()

-- name: tick_texts
-- Like tick_sums, with the cells as one text: a large table of numbers travels far faster so.
SELECT s.tick, array_to_string(s.sums, ',') AS sums FROM dbext_private.tick_sum AS s
WHERE s.release_id = $1::integer AND s.stream_no = $2::integer AND s.tick > $3::bigint AND s.tick <= $4::bigint
ORDER BY s.tick

-- name: committed_texts
-- Committed nodes of a stream between two numbers, in order, their cells as one text.
SELECT n.node_no, array_to_string(n.noisy, ',') AS noisy FROM dbext_private.node AS n
WHERE n.release_id = $1::integer AND n.stream_no = $2::integer AND n.node_no BETWEEN $3::bigint AND $4::bigint
    AND n.drawn_in <> pg_current_xact_id()
ORDER BY n.node_no

-- name: texts
-- Nodes of a stream between two numbers, in order, their cells as one text; also those of this transaction.
SELECT n.node_no, array_to_string(n.noisy, ',') AS noisy FROM dbext_private.node AS n
WHERE n.release_id = $1::integer AND n.stream_no = $2::integer AND n.node_no BETWEEN $3::bigint AND $4::bigint
ORDER BY n.node_no

-- name: committed_numbers
-- The numbers of all committed nodes of a stream, in order.
SELECT n.node_no FROM dbext_private.node AS n
WHERE n.release_id = $1::integer AND n.stream_no = $2::integer AND n.drawn_in <> pg_current_xact_id()
ORDER BY n.node_no

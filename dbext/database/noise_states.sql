-- name: state
-- Where the noise of a stream stands: the last period that was drawn and its buffers, the last one answered and its exact totals, as texts.
SELECT s.drawn, array_to_string(s.buffers, ',') AS buffers, s.answered, array_to_string(s.totals, ',') AS totals
FROM dbext_private.noise_state AS s WHERE s.release_id = $1::integer AND s.stream_no = $2::integer

-- name: begin
-- The state before anything was drawn; refused by the primary key if there is one.
INSERT INTO dbext_private.noise_state (release_id, stream_no, drawn, buffers, answered, totals)
VALUES ($1::integer, $2::integer, 0, $3::numeric[], 0, $4::numeric[])

-- name: drawn
-- Move the noise on.
UPDATE dbext_private.noise_state AS s SET drawn = $4::bigint, buffers = $5::numeric[]
WHERE s.release_id = $1::integer AND s.stream_no = $2::integer AND s.drawn = $3::bigint

-- name: answered
-- Move the exact totals on.
UPDATE dbext_private.noise_state AS s SET answered = $3::bigint, totals = $4::numeric[]
WHERE s.release_id = $1::integer AND s.stream_no = $2::integer

-- name: forget
-- Delete nodes that nothing will be answered from again, which are those before a number; that of the baseline stays.
DELETE FROM dbext_private.node AS n
WHERE n.release_id = $1::integer AND n.stream_no = $2::integer AND n.node_no > 0 AND n.node_no < $3::bigint

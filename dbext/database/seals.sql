-- name: head
-- The last closed tick, and the last boundary that has passed.
SELECT h.tick, t.tick - (dbext_private.table_tick_end(h.table_id, t.tick) > n.moment)::integer AS ended
FROM dbext_private.seal_head AS h CROSS JOIN (SELECT dbext_private.effective_now() AS moment OFFSET 0) AS n
CROSS JOIN LATERAL (SELECT dbext_private.table_tick_of(h.table_id, n.moment) AS tick OFFSET 0) AS t
WHERE h.table_id = $1::integer

-- name: close
-- Take the head's row lock; what the previous seal stored comes back as it is under the lock.
UPDATE dbext_private.seal_head AS h SET seal_no = h.seal_no + 1
FROM dbext_private.tracked_table AS t WHERE h.table_id = $1::integer AND t.table_id = h.table_id
RETURNING h.seal_no, h.tick, h.boundary::text AS boundary, h.snapshot::text AS snapshot, t.first_tick, t.rows_per_unit,
    EXISTS (SELECT FROM dbext_private.tracked_column AS k WHERE k.table_id = h.table_id AND k.is_key
        AND k.position NOT IN (SELECT r.number FROM dbext_private.recorded_columns(h.table_id) AS r)) AS unit_lost

-- name: snapshot
-- The snapshot that closes the ticks: read in a statement after the lock, so that it sees whatever was committed before.
SELECT pg_current_snapshot()::text AS snapshot

-- name: ends
-- Boundaries that end a run of ticks, and the last of them.
SELECT dbext_private.tick_ends($1::integer, $2::bigint, $3::bigint)::text AS ends,
       dbext_private.table_tick_end($1::integer, $3::bigint)::text AS boundary

-- name: follow_schema
-- Look whether capture is whole and constraints were declared, and mark what is not so.
SELECT dbext_private.follow_briefly($1::integer)

-- name: store_head
-- What the next seal must know.
UPDATE dbext_private.seal_head AS h SET tick = $2::bigint, boundary = $3::timestamptz, snapshot = $4::pg_snapshot WHERE h.table_id = $1::integer

-- name: record
-- One row per pass; the counts are for dbext_admin alone.
INSERT INTO dbext_private.seal (table_id, seal_no, first_tick, last_tick, boundary, snapshot, sealed_at, taken, late, mismatched, files, written)
SELECT $1::integer, $2::bigint, $3::bigint, $4::bigint, $5::timestamptz, $6::pg_snapshot, clock_timestamp(), $7::bigint, $8::bigint, $9::bigint, l.files, l.written
FROM dbext_private.look_at($1::integer) AS l

-- name: summarise
-- What this seal has read the next one need not read again.
SELECT dbext_private.summarise($1::integer)

-- name: execute
-- Run a statement of a pass.
SELECT dbext_private.execute_pass($1::text, $2::pg_snapshot, $3::pg_snapshot, $4::timestamptz, $5::timestamptz, $6::timestamptz[],
    $7::bigint, $8::bigint, $9::bigint, $10::bigint, $11::integer, $12::bigint, $13::bigint)::text AS result

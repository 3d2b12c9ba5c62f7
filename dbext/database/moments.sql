-- name: snap
-- The tick boundaries at or around a text read as a moment in a time zone: the last one not after it and the first one not before it.
SELECT m.moment IS NOT NULL AS understood,
       t.tick - (dbext_private.table_tick_end($1::integer, t.tick) > m.moment)::integer AS floor, t.tick AS ceiling
FROM (SELECT dbext_private.canonical_literal($2::text, 'pg_catalog.timestamptz', $3::text)::timestamptz AS moment) AS m
LEFT JOIN LATERAL (
    SELECT dbext_private.table_tick_of($1::integer, m.moment) AS tick
    WHERE m.moment >= '1000-01-01' AND m.moment < '5000-01-01') AS t ON true

-- name: now
-- The last tick boundary that is not after the present moment.
SELECT t.tick - (dbext_private.table_tick_end($1::integer, t.tick) > n.moment)::integer AS floor
FROM (SELECT dbext_private.effective_now() AS moment) AS n
CROSS JOIN LATERAL (SELECT dbext_private.table_tick_of($1::integer, n.moment) AS tick) AS t

-- name: ends
-- The moments of tick boundaries; NULL for a NULL one.
SELECT dbext_private.table_tick_end($1::integer, $2::bigint)::text AS first, dbext_private.table_tick_end($1::integer, $3::bigint)::text AS last

-- name: shown
-- A tick boundary as people of the table's time zone write it.
SELECT to_char(dbext_private.table_tick_end(t.table_id, $2::bigint) AT TIME ZONE t.time_zone, 'YYYY-MM-DD HH24:MI:SS') || ' ' || t.time_zone AS shown
FROM dbext_private.tracked_table AS t WHERE t.table_id = $1::integer

-- name: is_literal
-- Whether a text is a value of a built-in type.
SELECT dbext_private.canonical_literal($1::text, ($2::text)::regtype, $3::text) IS NOT NULL AS fits

-- name: windows
-- Moments of many windows' boundaries, in order; a start of NULL is where the table's history begins.
SELECT dbext_private.table_tick_end($1::integer, coalesce(p.first, t.first_tick - 1)) AS first, dbext_private.table_tick_end($1::integer, p.last) AS last
FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS p(first, last, place), dbext_private.tracked_table AS t
WHERE t.table_id = $1::integer ORDER BY p.place

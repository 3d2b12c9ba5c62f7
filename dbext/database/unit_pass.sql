-- name: pass
-- A pass over units of several rows. First the rows follow their records; each step of a row stands beside what the table of rows has of
-- it (place, was_*), and `ends` says that it is the row's last one in this pass.
${walk},
followed AS MATERIALIZED (
    SELECT s.*, b.entry IS NOT NULL AS baseline, a.place, a.place IS NOT NULL AS was_present, ${ends} AS ends${was} FROM steps AS s
    LEFT JOIN (SELECT o.entry, o.tick FROM ordered AS o WHERE o.op = 'B' GROUP BY o.entry, o.tick) AS b USING (entry, tick)
    LEFT JOIN LATERAL (SELECT a.ctid AS place, a.* FROM ${rows} AS a WHERE ${same_key_as} OFFSET 0) AS a ON true
),
-- Rows of the same statement's snapshot, so their places hold; arrays make the planner go by place.
rows_gone AS (
    DELETE FROM ${rows} AS a
    WHERE a.ctid = ANY (ARRAY(SELECT k.place FROM followed AS k WHERE k.ends AND k.place IS NOT NULL AND NOT k.present))
),
rows_come AS (
    INSERT INTO ${rows} (${row_columns}) SELECT ${keys_k}${news_k} FROM followed AS k WHERE k.ends AND k.place IS NULL AND k.present
),
${moved}
${images}
${admit}
SELECT jsonb_build_object(
    'taken', (SELECT count(*) FROM ordered AS o WHERE o.op <> 'T'),
    'late', (SELECT count(*) FROM ordered AS o WHERE o.op <> 'T' AND o.mutated_at <= $3),
    'mismatched', (SELECT count(*) FROM followed AS k WHERE k.leads AND NOT k.in_order AND k.first_op IN ('I', 'U', 'D')
        AND (k.was_present <> (k.first_op <> 'I') OR k.was_present AND (${first_differs}))))

-- name: moved
-- Rows that are there before and after.
rows_moved AS (
    UPDATE ${rows} AS a SET ${set_rows} FROM followed AS k
    WHERE a.ctid = ANY (ARRAY(SELECT k.place FROM followed AS k WHERE k.ends AND k.place IS NOT NULL AND k.present)) AND a.ctid = k.place
        AND k.ends AND k.present
),

-- name: images
-- Then their units: what each is at the end of every tick in which one of its rows has a step. `unit` numbers the units, `moment` these ticks.
touched AS MATERIALIZED (
    SELECT f.*, dense_rank() OVER (ORDER BY ${unit_f}) AS unit, dense_rank() OVER (PARTITION BY ${unit_f} ORDER BY f.tick) - 1 AS moment FROM (
        SELECT f.entry, f.tick, f.leads, f.present, f.was_present, f.place, f.baseline, ${unit_f}${row_f}${was_f}${news_f} FROM followed AS f
        ${emptied}
    ) AS f
),
units AS MATERIALIZED (
    SELECT t.unit, max(t.moment) + 1 AS moments, count(t.place) FILTER (WHERE t.leads) AS stepped, ${unit_t} FROM touched AS t GROUP BY t.unit, ${unit_t}
),
moments AS MATERIALIZED (
    SELECT t.unit, t.moment, t.tick, bool_or(t.baseline) AS baseline FROM touched AS t GROUP BY t.unit, t.moment, t.tick
),
-- What rows are from one moment until before another, or to the end. Of rows without a step the first ones are enough.
versions AS (
    SELECT t.unit, 0::bigint AS since, t.moment AS until${row_t}${was_t} FROM touched AS t WHERE t.leads AND t.was_present AND t.moment > 0
    UNION ALL
    SELECT t.unit, t.moment, t.next${row_t}${news_t} FROM (SELECT t.*, ${next_moment} AS next FROM touched AS t) AS t WHERE t.present
    UNION ALL
    SELECT u.unit, 0, NULL${row_a}${images_a} FROM units AS u CROSS JOIN LATERAL (
        SELECT a.ctid AS place, a.* FROM ${rows} AS a WHERE ${same_key_au} ORDER BY ${row_order_a} LIMIT ${most} + u.stepped OFFSET 0
    ) AS a WHERE NOT EXISTS (SELECT FROM touched AS t WHERE t.place = a.place)
),
${shown}
first_rows AS (
    SELECT r.unit, r.moment${arrays} FROM (
        SELECT s.*, row_number() OVER (PARTITION BY s.unit, s.moment ORDER BY ${row_order_s}) AS place FROM shown AS s
    ) AS r WHERE r.place <= ${most} GROUP BY r.unit, r.moment
),
unit_steps AS MATERIALIZED (
    SELECT s.*${firsts_s} FROM (
        SELECT m.unit AS entry, m.tick, CASE WHEN m.baseline THEN 'B' ELSE 'T' END::"char" AS first_op, false AS in_order,
            r.unit IS NOT NULL AS present, ${unit_u}${news_r}
        FROM moments AS m JOIN units AS u USING (unit) LEFT JOIN first_rows AS r USING (unit, moment)
    ) AS s
    ${firsts}
),

-- name: emptied
-- A truncation concerns every unit that was there.
UNION ALL
SELECT NULL, t.tick, false, false, false, NULL, false, ${keys_a}${null_rows} FROM ${admission} AS a CROSS JOIN (
    SELECT ${own_tick} AS tick FROM taken AS t WHERE t.op = 'T' ORDER BY t.number LIMIT 1
) AS t WHERE a.present

-- name: one_moment
-- A pass over one tick.
shown AS (SELECT v.*, 0::bigint AS moment FROM versions AS v),

-- name: many_moments
-- Many moments of a unit of many rows do not cost moments times rows.
-- Versions are compared by runs of 2^level moments, each standing in at most two runs of every level. A row that is not among the first
-- of a run over which it is there is not among them at any moment in it.
sides AS (
    SELECT v.*, generate_series(0, 2 * floor(ln(v.until - v.since) / ln(2.0) + 0.001)::integer + 1) AS side
    FROM (SELECT v.unit, v.since, coalesce(v.until, u.moments) AS until${row_v}${news_v} FROM versions AS v JOIN units AS u USING (unit)) AS v
),
bounded AS (
    SELECT s.*, s.side / 2 AS level, (s.since + (1 << s.side / 2) - 1) >> s.side / 2 AS low, s.until >> s.side / 2 AS high FROM sides AS s
),
runs AS (
    SELECT b.*, b.low AS run FROM bounded AS b WHERE b.low < b.high AND b.side % 2 = 0 AND b.low % 2 = 1
    UNION ALL
    SELECT b.*, b.high - 1 FROM bounded AS b WHERE b.low < b.high AND b.side % 2 = 1 AND b.high % 2 = 1
),
foremost AS (
    SELECT r.* FROM (SELECT r.*, row_number() OVER (PARTITION BY r.unit, r.level, r.run ORDER BY ${row_order_r}) AS place FROM runs AS r) AS r
    WHERE r.place <= ${most}
),
shown AS (
    SELECT m.unit, m.moment${row_l}${news_l} FROM (
        SELECT m.unit, m.moment, generate_series(0, floor(ln(u.moments) / ln(2.0) + 0.001)::integer) AS level FROM moments AS m JOIN units AS u USING (unit)
    ) AS m JOIN foremost AS l ON l.unit = m.unit AND l.level = m.level AND l.run = m.moment >> m.level
),

-- name: rows
-- First half of a pass over units of several rows: the rows become what they are at the end of the tick.
${walk},
known AS MATERIALIZED (
    SELECT s.*, a.place, a.place IS NOT NULL AS was_present${was} FROM steps AS s
    LEFT JOIN LATERAL (SELECT a.ctid AS place, a.* FROM ${admission} AS a WHERE ${same_key_as} OFFSET 0) AS a ON true
),
-- Rows of the same statement's snapshot, so their places hold; arrays make the planner go by place.
gone AS (
    DELETE FROM ${admission} AS a
    WHERE a.ctid = ANY (ARRAY(SELECT k.place FROM known AS k WHERE k.place IS NOT NULL AND NOT k.present))
),
come AS (
    INSERT INTO ${admission} (${row_columns}) SELECT ${keys_k}${news_k} FROM known AS k WHERE k.place IS NULL AND k.present
)${moved}
SELECT jsonb_build_object(
    'taken', (SELECT count(*) FROM ordered AS o WHERE o.op <> 'T'),
    'late', (SELECT count(*) FROM ordered AS o WHERE o.op <> 'T' AND o.mutated_at <= $3),
    'mismatched', (SELECT count(*) FROM known AS k WHERE NOT k.in_order AND k.first_op IN ('I', 'U', 'D')
        AND (k.was_present <> (k.first_op <> 'I') OR k.was_present AND (${first_differs}))))

-- name: moved
-- Rows that are there before and after.
, moved AS (
    UPDATE ${admission} AS a SET ${images} FROM known AS k
    WHERE a.ctid = ANY (ARRAY(SELECT k.place FROM known AS k WHERE k.place IS NOT NULL AND k.present)) AND a.ctid = k.place AND k.present
)

-- name: units
-- Second half: the images of units that have records, made of their first rows, are admitted like those of any entry. A unit that was
-- never there at the end of a tick is not known yet: its type is that of the first image that it has.
WITH touched AS MATERIALIZED (
    SELECT ${keys_t}, bool_or(t.baseline) AS baseline FROM (
        SELECT ${keys_l}, l.op = 'B' AS baseline FROM ${log} AS l WHERE l.op <> 'T' AND ${new_rows}
        UNION ALL
        SELECT ${keys_d}, d.op = 'B' FROM ${deferred} AS d WHERE d.op <> 'T' AND d.taken_by = $8
        ${emptied}
    ) AS t GROUP BY ${keys_t}
),
steps AS MATERIALIZED (
    SELECT row_number() OVER () AS entry, $7::bigint AS tick, true AS leads, $7::bigint AS began,
        CASE WHEN g.baseline THEN 'B' ELSE 'T' END::"char" AS first_op, false AS in_order, i.rows > 0 AS present, ${keys_g}${news_i}${firsts_i}
    FROM touched AS g CROSS JOIN LATERAL (
        SELECT count(*) AS rows${arrays} FROM (
            SELECT row_number() OVER (ORDER BY ${row_order}) AS place${values} FROM ${rows} AS m WHERE ${same_key_mg} ORDER BY ${row_order} LIMIT ${most}
        ) AS x OFFSET 0
    ) AS i
),
${admit}
SELECT jsonb_build_object('taken', 0, 'late', 0, 'mismatched', 0)

-- name: emptied
-- A truncation concerns every unit that was there.
UNION ALL
SELECT ${keys_a}, false FROM ${admission} AS a WHERE a.present

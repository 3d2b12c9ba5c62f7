-- name: new_rows
-- Condition on a log row l: the previous seal did not take it (invisible to that one or beyond its boundary), it is visible now and within the boundary.
-- Only the first line may use an index: nearly all of history lies within the boundary, hence IS TRUE.
(l.xid >= pg_snapshot_xmax($1) OR l.xid = ANY (ARRAY(SELECT pg_snapshot_xip($1))) OR l.mutated_at > $3)
    AND pg_visible_in_snapshot(l.xid, $2) AND (l.mutated_at <= $4) IS TRUE
    AND NOT EXISTS (SELECT FROM ${deferred} AS d WHERE d.number = l.number)

-- name: earlier_left
-- An earlier record of the entry of c that belongs to a tick still open.
SELECT FROM ${log} AS e WHERE e.mutated_at > $4 AND pg_visible_in_snapshot(e.xid, $2)
    AND e.number < c.number AND ${same_key_ec}

-- name: left_behind
-- The smallest number among rows that are committed but belong to a tick still open, and among truncations there; any truncation to take?
SELECT jsonb_build_object('floor', min(l.number), 'truncation', min(l.number) FILTER (WHERE l.op = 'T'),
    'truncated', EXISTS (SELECT FROM ${log} AS l WHERE l.op = 'T' AND ${new_rows})
        OR EXISTS (SELECT FROM ${deferred} AS d WHERE d.op = 'T' AND d.taken_by IS NULL))
FROM ${log} AS l WHERE l.mutated_at > $4 AND pg_visible_in_snapshot(l.xid, $2)

-- name: defer
-- Set rows aside whose entry has an earlier mutation in a tick still open (the clock was set back between them).
WITH candidate AS MATERIALIZED (
    SELECT ${record_l} FROM ${log} AS l WHERE ${new_rows} AND l.number > $11
),
cut AS (
    SELECT least($12, (SELECT min(c.number) FROM candidate AS c WHERE c.op = 'T'),
        (SELECT min(d.number) FROM ${deferred} AS d WHERE d.op = 'T' AND d.taken_by IS NULL AND d.number > $11)) AS number
),
deferring AS (
    INSERT INTO ${deferred} (${record})
    SELECT ${record_c} FROM candidate AS c, cut WHERE c.number >= cut.number
    UNION ALL
    SELECT ${record_c} FROM candidate AS c, cut WHERE (cut.number IS NULL OR c.number < cut.number) AND EXISTS (${earlier_left})
    RETURNING 1
)
SELECT to_jsonb(count(*)) FROM deferring

-- name: take_deferred
-- Take what was set aside, unless it must still wait.
WITH cut AS (
    SELECT least($12, (SELECT min(d.number) FROM ${deferred} AS d WHERE d.op = 'T' AND d.taken_by IS NULL AND d.number > $11)) AS number
),
taking AS (
    UPDATE ${deferred} AS c SET taken_by = $8 FROM cut
    WHERE c.taken_by IS NULL AND c.mutated_at <= $4 AND (cut.number IS NULL OR c.number < cut.number)
        AND ($11 IS NULL OR NOT EXISTS (${earlier_left}))
    RETURNING 1
)
SELECT to_jsonb(count(*)) FROM taking

-- name: own_tick
-- The tick of a record's own time. A tick (a, b] holds b, but width_bucket counts from the bound itself: hence the microsecond.
least($6 + 1 + width_bucket(t.mutated_at - interval '1 microsecond', $5), $7)

-- name: pass
-- Assign rows to ticks, admit or freeze, move settled images on.
${walk},
${admit}
SELECT jsonb_build_object(
    'taken', (SELECT count(*) FROM ordered AS o WHERE o.op <> 'T'),
    'late', (SELECT count(*) FROM ordered AS o WHERE o.op <> 'T' AND o.mutated_at <= $3),
    'mismatched', (SELECT count(*) FROM decided AS d WHERE d.mismatched AND NOT d.frozen))

-- name: walk
-- From records to steps: what each entry is at the end of each tick.
WITH taken AS (
    SELECT ${record_l} FROM ${log} AS l WHERE ${new_rows}
    UNION ALL
    SELECT ${record_d} FROM ${deferred} AS d WHERE d.taken_by = $8
),
${truncated}
-- entry: a number for the entry in this pass. tick: never below that of an earlier record of the same entry.
ordered AS MATERIALIZED (
    SELECT t.*, ${entry} AS entry, lag(t.number) OVER records IS NULL AS begins, lead(t.number) OVER records IS NULL AS ends, ${tick} AS tick
    FROM (
        SELECT ${record_t}, ${own_tick} AS own_tick FROM taken AS t WHERE t.op <> 'T'
        ${truncations}
    ) AS t
    WINDOW records AS (PARTITION BY ${keys_t} ORDER BY t.number)
),
-- Entries with several records. Statements that nest (a row trigger that changes its row again) are recorded inside out, so numbers do not
-- always tell the last image. Records are a walk from image to image: it ends where it arrives once more than it leaves, or where it began.
crowd AS MATERIALIZED (SELECT o.* FROM ordered AS o WHERE NOT (o.begins AND o.ends)),
crowd_ticks AS (
    SELECT c.entry, c.tick, max(c.number) AS last_number,
        max(max(c.number) FILTER (WHERE c.op = 'T')) OVER (PARTITION BY c.entry ORDER BY c.tick) AS truncation
    FROM crowd AS c GROUP BY c.entry, c.tick
),
starts AS (
    SELECT c.entry, CASE WHEN a.recorded THEN c.op IN ('U', 'D') ELSE coalesce(a.present, false) END AS present${first_known}
    FROM crowd AS c LEFT JOIN LATERAL (
        SELECT a.ctid AS place, ${known_as}, a.* FROM ${admission} AS a WHERE ${same_key_ac} OFFSET 0
    ) AS a ON true
    WHERE c.begins
),
broken AS (
    SELECT w.entry FROM (
        SELECT c.entry, c.op, coalesce(lag(c.op IN ('B', 'I', 'U')) OVER records, s.present) AS expected${olds_and_expected}
        FROM crowd AS c JOIN starts AS s USING (entry) WINDOW records AS (PARTITION BY c.entry ORDER BY c.number)
    ) AS w
    WHERE w.op IN ('I', 'U', 'D') AND (w.expected <> (w.op <> 'I') OR w.expected AND (${unexpected}))
    GROUP BY w.entry
),
-- Images of broken walks, numbered by entry: 0 is absence. Never as text, which could be longer than any text may be.
images AS (
    SELECT c.entry, c.tick, c.number, 1 AS weight, c.op IN ('B', 'I', 'U') AS present${news_c_as_images} FROM broken AS b JOIN crowd AS c USING (entry)
    UNION ALL
    SELECT c.entry, c.tick, c.number, -1, c.op IN ('U', 'D')${olds_c_as_images} FROM broken AS b JOIN crowd AS c USING (entry)
    UNION ALL
    SELECT s.entry, NULL, NULL, 0, s.present${images_s} FROM broken AS b JOIN starts AS s USING (entry)
),
numbered AS (
    SELECT i.entry, i.tick, i.number, i.weight,
        CASE WHEN i.present THEN dense_rank() OVER (PARTITION BY i.entry, i.present ORDER BY i.present${image_order}) ELSE 0 END AS image
    FROM images AS i
),
balances AS (
    SELECT n.entry, t.tick, n.image, sum(n.weight) AS total, max(n.number) FILTER (WHERE n.weight = 1) AS number,
        n.image = CASE WHEN t.truncation IS NULL THEN s.image ELSE 0 END AS starts
    FROM numbered AS n JOIN numbered AS s ON s.entry = n.entry AND s.weight = 0
    JOIN crowd_ticks AS t ON t.entry = n.entry AND n.tick <= t.tick AND n.number > coalesce(t.truncation, 0)
    GROUP BY n.entry, t.tick, n.image, 6
),
repaired AS (
    SELECT b.entry, b.tick, coalesce(max(b.number) FILTER (WHERE b.total = 1), max(b.number) FILTER (WHERE b.starts)) AS number,
        bool_or(b.starts AND b.total <= 0) AS in_order
    FROM balances AS b GROUP BY b.entry, b.tick HAVING max(abs(b.total)) <= 1 AND count(*) FILTER (WHERE b.total = 1) <= 1
),
-- One step per entry and tick: its image at the tick's end (new_*), and the first image that this pass knows (image_*).
steps AS (
    SELECT o.entry, o.tick, true AS leads, o.tick AS began, o.op AS first_op, false AS in_order, o.op IN ('B', 'I', 'U') AS present,
        ${keys_o}${news_o}${first_images_o}
    FROM ordered AS o WHERE o.begins AND o.ends
    UNION ALL
    SELECT t.entry, t.tick, t.tick = f.tick, f.tick, f.op, coalesce(r.in_order, false), c.op IN ('B', 'I', 'U'), ${keys_f}${more_news_c}${first_images_f}
    FROM crowd_ticks AS t LEFT JOIN repaired AS r USING (entry, tick)
    JOIN crowd AS c ON c.entry = t.entry AND c.number = coalesce(r.number, t.last_number)
    JOIN crowd AS f ON f.entry = t.entry AND f.begins
)

-- name: admit
-- From steps to settled changes.
-- With what was settled before (kept_*, was_*). A new entry's type is that of its first image.
known AS (
    SELECT s.*, a.place, coalesce(a.slots, 0) AS slots, coalesce(a.frozen, false) AS frozen, coalesce(a.present, false) AS was_present,
        coalesce(a.first_tick, s.began) AS first_tick, CASE WHEN a.place IS NULL THEN ${classify} ELSE a.type_no END AS type_no${kept}${was}
    FROM ${steps} AS s LEFT JOIN LATERAL (SELECT a.ctid AS place, a.* FROM ${admission} AS a WHERE ${same_key_as} OFFSET 0) AS a ON true ${worth}
),
-- open: whether anything of this tick may still count for the entry.
limited AS (
    SELECT k.entry, k.tick, k.present${news_k}, k.place, k.slots, k.frozen, k.was_present, k.first_tick, k.type_no${kept_k}${was_k},
        e.max_mutations AS k, k.type_no IS NOT NULL AND coalesce(k.tick <= k.first_tick + e.active_within, true) AS open,
        ${is_baseline} AS baseline,
        ${leads} AND NOT k.in_order AND k.first_op IN ('I', 'U', 'D') AND k.type_no IS NOT NULL AND coalesce(k.tick <= k.first_tick + e.active_within, true)
            AND (k.was_present <> (k.first_op <> 'I') OR k.was_present AND (${first_differs})) AS mismatched,
        CASE WHEN ${leads} AND e.at_limit = 'leave' THEN greatest(k.first_tick + e.active_within, $6 + 1) END AS leave_at,
        k.first_tick + e.loosest_active_within AS leave_by
    FROM known AS k LEFT JOIN dbext_private.entry_type AS e ON e.table_id = $10 AND e.type_no = k.type_no
),
${departures}
${decide}
changed_images AS (
    INSERT INTO ${change} (tick, baseline, old_present, new_present${change_columns})
    SELECT d.tick, d.baseline, ${settled_present}, d.present${kept_d}${settled_images}${news_d} FROM decided AS d WHERE d.admitted
),
arrived AS (
    INSERT INTO ${admission} (type_no, slots, first_tick, frozen, present${admission_columns})
    SELECT o.type_no, o.used, o.first_tick, o.ignored, o.used > 0 AND o.present${kept_o}${settled_now} FROM outcomes AS o WHERE o.place IS NULL
),
-- Rows of the same statement's snapshot, so their places hold: no key is looked up again, and the array makes the planner go by place.
moved AS (
    UPDATE ${admission} AS a SET slots = o.slots + o.used, frozen = o.frozen OR o.ignored, present = CASE WHEN o.used > 0 THEN o.present ELSE o.was_present END${set_images}
    FROM outcomes AS o
    WHERE a.ctid = ANY (ARRAY(SELECT o.place FROM outcomes AS o WHERE ${moving})) AND a.ctid = o.place AND (${moving})
)

-- name: truncated
-- A truncation makes every entry absent that was there: a record for each, in its place among the others. Only the first one meets what was
-- there before this pass, each later one what came since the one before it.
truncated AS MATERIALIZED (
    SELECT t.number, ${keys_p}, t.mutated_at FROM (
        SELECT r.truncation AS number, ${keys_r} FROM (
            SELECT r.*, min(r.number) FILTER (WHERE r.op = 'T') OVER (ORDER BY r.number DESC) AS truncation FROM taken AS r
        ) AS r WHERE r.op <> 'T' AND r.truncation IS NOT NULL
        UNION
        SELECT t.number, ${keys_a} FROM (SELECT min(t.number) AS number FROM taken AS t WHERE t.op = 'T') AS t CROSS JOIN ${admission} AS a WHERE ${held}
    ) AS p JOIN taken AS t USING (number)
),

-- name: truncations
-- The records of truncations.
UNION ALL
SELECT t.number, 'T', ${keys_t}${nulls}, t.mutated_at, ${own_tick} FROM truncated AS t

-- name: stay
-- Nobody leaves by the calendar.
walked AS (SELECT l.* FROM limited AS l),

-- name: leave
-- Entries whose time is over become absent, whether they have records in this pass or not.
departing AS (
    SELECT l.entry, l.leave_at AS tick, false AS present${null_news}, l.place, l.slots, l.frozen, l.was_present, l.first_tick, l.type_no${kept_l}${was_l},
        l.k, true AS open, false AS baseline, false AS mismatched, l.leave_at, l.leave_by
    FROM limited AS l WHERE l.leave_at <= $7 AND coalesce(l.leave_at <= l.leave_by, true)
    ${silent_departures}
),
walked AS (
    SELECT l.* FROM limited AS l WHERE NOT EXISTS (SELECT FROM departing AS d WHERE d.entry = l.entry AND d.tick = l.tick)
    UNION ALL
    SELECT d.* FROM departing AS d
),

-- name: silent
-- Departures of one type among entries without a record in this pass.
UNION ALL
SELECT -(row_number() OVER () * ${types} + ${place}), greatest(a.first_tick + ${within}, $6 + 1), false${null_news}, a.ctid, a.slots, a.frozen, true, a.first_tick, a.type_no${kept_a}${was_a},
    ${mutations}, true, false, false, NULL, NULL
FROM ${admission} AS a
WHERE a.present AND a.type_no = ${type_no} AND a.first_tick <= $7 - ${within}${not_too_late}
    AND NOT EXISTS (SELECT FROM known AS k WHERE k.place = a.ctid)

-- name: one_tick
-- Every entry has one step: compare it with what was settled. A slot is spent by a tick that changes the settled image; the last of
-- several admits only a departure, and so does an entry that is frozen but has slots left.
counted AS (
    SELECT w.*, w.open AND (w.present <> w.was_present OR w.present AND w.was_present AND (${changed_since_settled})) AS changed FROM walked AS w
),
decided AS (
    SELECT c.*, c.changed AND CASE WHEN c.frozen THEN NOT c.present AND (c.k IS NULL OR c.slots < c.k)
        ELSE c.k IS NULL OR c.slots + 1 < c.k OR c.slots + 1 = c.k AND (c.k = 1 OR NOT c.present) END AS admitted
    FROM counted AS c
),
outcomes AS NOT MATERIALIZED (SELECT d.*, d.admitted::integer AS used, d.changed AND NOT d.admitted AS ignored FROM decided AS d),

-- name: many_ticks
-- The same over several steps of an entry. n numbers its changes; those below the last slot count in turn, and the reserve admits the
-- first departure after them, if the image settled by then is present.
compared AS (
    SELECT w.*, lag(w.present, 1, w.was_present) OVER steps AS before_present${before_images}
    FROM walked AS w WINDOW steps AS (PARTITION BY w.entry ORDER BY w.tick)
),
changing AS (
    SELECT c.*, c.open AND (c.present <> c.before_present OR c.present AND c.before_present AND (${changed_since_before})) AS changed FROM compared AS c
),
counted AS (
    SELECT c.*, c.slots + count(*) FILTER (WHERE c.changed) OVER (PARTITION BY c.entry ORDER BY c.tick) AS n FROM changing AS c
),
reserved AS (
    SELECT c.*, min(c.tick) FILTER (WHERE c.open AND NOT c.present AND (c.frozen OR c.n >= c.k)) OVER (PARTITION BY c.entry) AS departure,
        CASE WHEN c.frozen THEN c.was_present AND (c.k IS NULL OR c.slots < c.k)
            ELSE c.k > 1 AND coalesce(bool_or(c.before_present) FILTER (WHERE c.changed AND c.n = c.k) OVER (PARTITION BY c.entry), false) END AS may_depart
    FROM counted AS c
),
decided AS (
    SELECT r.*, r.changed AND NOT r.frozen AND (r.k IS NULL OR r.n < r.k OR r.n = 1 AND r.k = 1)
        OR coalesce(r.tick = r.departure AND r.may_depart, false) AS admitted
    FROM reserved AS r
),
totals AS (
    SELECT d.entry, count(*) FILTER (WHERE d.admitted) AS used, bool_or(d.changed AND NOT d.admitted) AS ignored,
        coalesce(max(d.tick) FILTER (WHERE d.admitted), min(d.tick)) AS tick
    FROM decided AS d GROUP BY d.entry
),
outcomes AS (SELECT d.*, t.used, t.ignored FROM decided AS d JOIN totals AS t USING (entry, tick)),

-- Retention: what is sealed, summed and old goes; what was settled since then, exact sums, nodes and admission stay.

CREATE FUNCTION dbext_private.needed_records(table_id integer, segments integer[]) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    columns text := dbext_private.run_time_names(format('log_%s', table_id), '%');
    keys text := dbext_private.run_time_names(format('log_%s', table_id), 'key\_%');
    same text := (dbext_private.recount_columns(table_id)).same;
    later text;
BEGIN
    -- Whoever changed an entry later superseded what it was, unless it was the same transaction, which may have recorded its statements inside out.
    SELECT coalesce(string_agg(format('SELECT l.number, l.xid, %s FROM ONLY %s AS l', keys, dbext_private.segment_name(s.table_id, s.segment)), ' UNION ALL '),
        format('SELECT l.number, l.xid, %s FROM ONLY %s AS l WHERE false', keys, dbext_private.segment_name(needed_records.table_id, NULL)))
    INTO later FROM dbext_private.log_segment AS s WHERE s.table_id = needed_records.table_id AND s.segment <> ALL (segments);
    RETURN (SELECT string_agg(format('SELECT %s FROM ONLY %s AS l WHERE l.op = ''T'' AND l.number = (SELECT t.number FROM marker AS t) '
        'UNION ALL SELECT %1$s FROM ONLY %2$s AS l WHERE l.ctid IN (SELECT r.place FROM judged AS r WHERE r.segment = %3$s AND NOT r.superseded '
        'AND NOT EXISTS (SELECT FROM (%4$s) AS c WHERE %5$s AND c.number > r.number AND c.xid <> r.xid))',
        columns, dbext_private.segment_name(table_id, s), s, later, same), ' UNION ALL ') FROM unnest(segments) AS s);
END $$;
COMMENT ON FUNCTION dbext_private.needed_records(integer, integer[]) IS
    'The query for what must stay of segments that go: the last truncation, and the last record of each entry that has no later one elsewhere.';

CREATE FUNCTION dbext_private.forget_records(table_id integer, through timestamptz, sealed dbext_private.seal_head, segments integer[],
    OUT went bigint, OUT stayed bigint)
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp
-- The planner knows nothing of how many records are needed, and must not look each of them up among all later ones.
SET work_mem = '64MB' SET jit = off SET enable_nestloop = off AS $$
DECLARE
    log text := dbext_private.segment_name(table_id, NULL);
    columns text := dbext_private.run_time_names(format('log_%s', table_id), '%');
    keys text := dbext_private.run_time_names(format('log_%s', table_id), 'key\_%');
    going text := (SELECT string_agg(format(' UNION ALL SELECT %s, l.ctid, l.number, l.xid, %s FROM ONLY %s AS l WHERE l.op <> ''T''',
        s, keys, dbext_private.segment_name(table_id, s)), '') FROM unnest(segments) AS s);
    ranges bigint[];
BEGIN
    went := 0;
    stayed := 0;
    IF keys IS NULL THEN
        RETURN;
    END IF;
    -- Exactly rows that a seal took: those it saw, within its boundary. A late commit that is not taken yet is no such row, however old.
    -- The last one of each entry stays, for recounts, with whatever else its transaction recorded of the entry: statements may nest.
    EXECUTE format('WITH marker AS (SELECT coalesce(max(t.number), 0) AS number FROM %1$s AS t WHERE t.op = ''T''),
        past AS (
            SELECT NULL::integer AS segment, l.ctid AS place, l.number, l.xid, %2$s FROM ONLY %1$s AS l WHERE l.mutated_at <= least($1, $2)
                AND pg_visible_in_snapshot(l.xid, $3) AND (l.op <> ''T'' OR l.number < (SELECT t.number FROM marker AS t))%3$s
        ),
        judged AS MATERIALIZED (
            SELECT p.*, p.xid <> first_value(p.xid) OVER records OR p.number < (SELECT t.number FROM marker AS t) AS superseded FROM past AS p
            WINDOW records AS (PARTITION BY %2$s ORDER BY p.number DESC)
        ),
        kept AS (INSERT INTO %1$s (%4$s) OVERRIDING SYSTEM VALUE %5$s RETURNING 1),
        gone AS (DELETE FROM ONLY %1$s AS l USING judged AS p WHERE l.ctid = p.place AND p.segment IS NULL AND p.superseded RETURNING l.ctid)
        SELECT (SELECT count(*) FROM judged AS p WHERE p.segment IS NOT NULL), (SELECT count(*) FROM kept),
            array_agg(DISTINCT (g.ctid::text::point)[0]::bigint / 32 * 32) FROM gone AS g', log, keys, coalesce(going, ''), columns,
        coalesce(dbext_private.needed_records(table_id, segments), format('SELECT %s FROM ONLY %s AS l WHERE false', columns, log)))
    INTO went, stayed, ranges USING through, sealed.boundary, sealed.snapshot;
    PERFORM dbext_private.summarise_anew(format('log_%s', table_id), format('log_%s_new', table_id), ranges);
    EXECUTE format('DELETE FROM dbext_private.deferred_%s AS d WHERE d.taken_by IS NOT NULL AND d.mutated_at <= $1', table_id) USING through;
END $$;
COMMENT ON FUNCTION dbext_private.forget_records(integer, timestamptz, dbext_private.seal_head, integer[]) IS
    'Deletes records of the log itself that were sealed, happened up to a moment and are superseded, and copies into it what must stay of segments that go.';

CREATE FUNCTION dbext_private.run_time_names(relation text, pattern text) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute AS a
    WHERE a.attrelid = format('dbext_private.%I', relation)::regclass AND a.attnum > 0 AND NOT a.attisdropped
        AND a.attname LIKE pattern AND a.attname <> 'new_present'
$$;
COMMENT ON FUNCTION dbext_private.run_time_names(text, text) IS 'The columns of a run-time table whose names fit a pattern, as a list; NULL if there are none.';

CREATE FUNCTION dbext_private.forget_changes(table_id integer, through bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp SET work_mem = '64MB' SET jit = off AS $$
DECLARE
    keys text := dbext_private.run_time_names(format('change_%s', table_id), 'key\_%');
    news text := coalesce(', ' || dbext_private.run_time_names(format('change_%s', table_id), 'new\_%'), '');
    forgotten bigint;
    ranges bigint[];
BEGIN
    IF keys IS NULL THEN
        RETURN 0;
    END IF;
    -- Of all its changes up to then an entry keeps one, its arrival with the image it had at the end: the sum over the whole past stays what it was.
    EXECUTE format('WITH past AS (
            SELECT c.ctid AS place, c.new_present, c.old_present, %1$s%2$s, count(*) OVER (PARTITION BY %1$s) AS records,
                row_number() OVER (PARTITION BY %1$s ORDER BY c.tick DESC) AS age
            FROM dbext_private.change_%3$s AS c WHERE c.tick <= $1
        ),
        gone AS (
            DELETE FROM dbext_private.change_%3$s AS c USING past AS p
            WHERE c.ctid = p.place AND (p.records > 1 OR p.old_present OR NOT p.new_present) RETURNING c.ctid
        ),
        arrived AS (
            INSERT INTO dbext_private.change_%3$s (tick, baseline, old_present, new_present, %1$s%2$s)
            SELECT $1, true, false, true, %1$s%2$s FROM past AS p WHERE p.age = 1 AND p.new_present AND (p.records > 1 OR p.old_present)
        )
        SELECT count(*), array_agg(DISTINCT (g.ctid::text::point)[0]::bigint / 32 * 32) FROM gone AS g', keys, news, table_id)
    INTO forgotten, ranges USING through;
    PERFORM dbext_private.summarise_anew(format('change_%s', table_id), format('change_%s_tick', table_id), ranges);
    RETURN forgotten;
END $$;
COMMENT ON FUNCTION dbext_private.forget_changes(integer, bigint) IS
    'Folds the settled changes of all ticks up to one into a single arrival of every entry that is there at its end.';

CREATE FUNCTION dbext_private.summarise_anew(relation text, index text, ranges bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Blocks are used again: their summaries must not reach back to rows that are gone. Vacuum holds this lock.
    EXECUTE format('LOCK TABLE dbext_private.%I IN SHARE UPDATE EXCLUSIVE MODE NOWAIT', relation);
    PERFORM brin_desummarize_range(format('dbext_private.%I', index)::regclass, block) FROM unnest(ranges) AS block;
EXCEPTION WHEN lock_not_available THEN
    NULL;
END $$;
COMMENT ON FUNCTION dbext_private.summarise_anew(text, text, bigint[]) IS 'Takes the summaries of block ranges back; the next seal makes them anew.';

CREATE FUNCTION dbext_private.require_summed(table_id integer, through bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    needing record;
BEGIN
    SELECT r.name, dbext_private.table_tick_end(r.table_id, r.summed_through) AS moment INTO needing FROM dbext_private.release AS r
    WHERE r.table_id = require_summed.table_id AND r.state = 'active' AND r.summed_through < require_summed.through
    ORDER BY r.summed_through, r.release_id LIMIT 1;
    IF FOUND THEN
        PERFORM dbext_private.refuse(format('release %s still needs what changed after %s', quote_ident(needing.name), needing.moment),
            'CALL dp_publish() first, keep more, or drop the release.', 'DP004');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.require_summed(integer, bigint) IS 'Refuses to forget ticks whose exact sums some release does not have yet.';

CREATE FUNCTION dbext_private.refuse_retain_here(tbl regclass, moment timestamptz, segments boolean) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    IF NOT EXISTS (SELECT FROM dbext_private.tracked_table AS t WHERE t.relation = tbl) THEN
        PERFORM dbext_private.refuse(format('table %s is not tracked', tbl), NULL, 'DP002');
    ELSIF coalesce(moment > dbext_private.effective_now(), true) THEN
        PERFORM dbext_private.refuse('keep must be an interval that is not negative', NULL, 'DP001');
    ELSIF segments IS NULL THEN
        PERFORM dbext_private.refuse('segments must be true or false', NULL, 'DP001');
    ELSIF pg_is_in_recovery() THEN
        PERFORM dbext_private.refuse('a standby forgets nothing of its own', 'Run this on the primary.', 'DP031');
    ELSIF NOT dbext_private.is_home() THEN
        PERFORM dbext_private.refuse('this database was restored, upgraded or promoted since it was last sealed',
            'A superuser accepts that with SELECT dp_confirm_upgrade().', 'DP031');
    ELSIF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM dbext_private.refuse('mutations are forgotten in a READ COMMITTED transaction: what was committed meanwhile must be seen', NULL, 'DP031');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.refuse_retain_here(regclass, timestamptz, boolean) IS 'Refusals of dp_retain.';

CREATE FUNCTION dbext_private.hold_tracked(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    PERFORM FROM dbext_private.tracked_table AS t WHERE t.table_id = hold_tracked.table_id FOR NO KEY UPDATE;
EXCEPTION WHEN lock_not_available THEN
    PERFORM dbext_private.refuse_changing(table_id);
END $$;
COMMENT ON FUNCTION dbext_private.hold_tracked(integer) IS
    'Locks what is known of a table against DDL that follows it, or gives up: seals wait for whoever keeps waiting here.';

CREATE FUNCTION dp_retain(tbl regclass, keep interval, segments boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
    known dbext_private.tracked_table;
    sealed dbext_private.seal_head;
    moment timestamptz := dbext_private.effective_now() - keep;
    through bigint;
    older boolean;
    done record;
BEGIN
    PERFORM dbext_private.refuse_retain_here(tbl, moment, segments);
    -- Seals and other calls wait for this row. What is read after it is what they left.
    SELECT h.* INTO sealed FROM dbext_private.seal_head AS h
    WHERE h.table_id = (SELECT max(t.table_id) FROM dbext_private.tracked_table AS t WHERE t.relation = tbl) FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM dbext_private.refuse('the table was tracked anew meanwhile', 'Try again.', 'DP031');
    END IF;
    SELECT t.* INTO known FROM dbext_private.tracked_table AS t WHERE t.table_id = sealed.table_id;
    through := dbext_private.table_tick_of(known.table_id, moment);
    through := least(through - (dbext_private.table_tick_end(known.table_id, through) > moment)::integer, sealed.tick);
    older := through > coalesce(known.forgotten_through, known.first_tick - 1);
    IF older THEN
        PERFORM dbext_private.require_summed(known.table_id, through);
    ELSE
        through := known.forgotten_through;  -- a segment may have been left last time
    END IF;
    moment := dbext_private.table_tick_end(known.table_id, through);
    SELECT k.* INTO done FROM dbext_private.keep_segments(known.table_id, moment, sealed) AS k;
    IF older THEN
        IF done.went IS NULL THEN
            PERFORM dbext_private.forget_records(known.table_id, moment, sealed, '{}');
        END IF;
        PERFORM dbext_private.forget_changes(known.table_id, through);
    END IF;
    -- Last, for DDL has to wait from here on.
    PERFORM dbext_private.hold_tracked(known.table_id);
    PERFORM dbext_private.lead_on(known.table_id, keep, segments);
    IF older THEN
        UPDATE dbext_private.tracked_table AS t SET forgotten_through = through WHERE t.table_id = known.table_id;
    END IF;
    RETURN CASE WHEN older THEN format('What changed in %s up to %s is forgotten one by one; windows begin there or later.', tbl, moment)
        ELSE format('Nothing of %s is that old.', tbl) END
        || CASE WHEN done.went IS NOT NULL THEN format(' Of %s records in segments that went, %s are needed and stay.', done.went, done.stayed) ELSE '' END
        || CASE WHEN done.held THEN ' Somebody else has its log locked: old segments of it stay until next time.' ELSE '' END;
END $$;
COMMENT ON FUNCTION dp_retain(regclass, interval, boolean) IS
    'Drops sealed mutations older than an interval. Exact sums, nodes, the ledger and what is settled stay; later windows cannot begin before. segments: cut the changelog into parts that are dropped whole, for entries that change often.';

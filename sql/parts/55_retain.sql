-- Retention: what is sealed, summed and old goes; what was settled since then, exact sums, nodes and admission stay.

CREATE FUNCTION dbext_private.forget_records(table_id integer, through timestamptz, sealed dbext_private.seal_head) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp SET work_mem = '64MB' SET jit = off AS $$
DECLARE
    keys text := dbext_private.run_time_names(format('log_%s', table_id), 'key\_%');
    forgotten bigint;
    ranges bigint[];
BEGIN
    IF keys IS NULL THEN
        RETURN 0;
    END IF;
    -- Exactly rows that a seal took: those it saw, within its boundary. A late commit that is not taken yet is no such row, however old.
    -- The last one of each entry stays, for recounts, with whatever else its transaction recorded of the entry: statements may nest.
    EXECUTE format('WITH past AS (
            SELECT l.ctid AS place, l.xid <> first_value(l.xid) OVER records OR l.number < t.number AS superseded
            FROM dbext_private.log_%1$s AS l CROSS JOIN (SELECT coalesce(max(t.number), 0) AS number FROM dbext_private.log_%1$s AS t WHERE t.op = ''T'') AS t
            WHERE l.mutated_at <= least($1, $2) AND pg_visible_in_snapshot(l.xid, $3) AND (l.op <> ''T'' OR l.number < t.number)
            WINDOW records AS (PARTITION BY %2$s ORDER BY l.number DESC)
        ),
        gone AS (DELETE FROM dbext_private.log_%1$s AS l USING past AS p WHERE l.ctid = p.place AND p.superseded RETURNING l.ctid)
        SELECT count(*), array_agg(DISTINCT (g.ctid::text::point)[0]::bigint / 32 * 32) FROM gone AS g', table_id, keys)
    INTO forgotten, ranges USING through, sealed.boundary, sealed.snapshot;
    PERFORM dbext_private.summarise_anew(format('log_%s', table_id), format('log_%s_new', table_id), ranges);
    EXECUTE format('DELETE FROM dbext_private.deferred_%s AS d WHERE d.taken_by IS NOT NULL AND d.mutated_at <= $1', table_id) USING through;
    RETURN forgotten;
END $$;
COMMENT ON FUNCTION dbext_private.forget_records(integer, timestamptz, dbext_private.seal_head) IS
    'Drops log rows that were sealed and happened up to a moment, all but the last such row of each entry.';

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

CREATE FUNCTION dp_retain(tbl regclass, keep interval) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
    known dbext_private.tracked_table;
    sealed dbext_private.seal_head;
    moment timestamptz := dbext_private.effective_now() - keep;
    through bigint;
BEGIN
    PERFORM dbext_private.require_admin();
    SELECT t.* INTO known FROM dbext_private.tracked_table AS t WHERE t.relation = tbl ORDER BY t.table_id DESC LIMIT 1;
    IF NOT FOUND THEN
        PERFORM dbext_private.refuse(format('table %s is not tracked', tbl), NULL, 'DP002');
    ELSIF keep IS NULL OR moment > dbext_private.effective_now() THEN
        PERFORM dbext_private.refuse('keep must be an interval that is not negative', NULL, 'DP001');
    ELSIF NOT dbext_private.is_home() THEN
        PERFORM dbext_private.refuse('this database was restored, upgraded or promoted since it was last sealed',
            'A superuser accepts that with SELECT dp_confirm_upgrade().', 'DP031');
    END IF;
    SELECT h.* INTO sealed FROM dbext_private.seal_head AS h WHERE h.table_id = known.table_id FOR UPDATE;
    through := dbext_private.table_tick_of(known.table_id, moment);
    through := least(through - (dbext_private.table_tick_end(known.table_id, through) > moment)::integer, sealed.tick);
    IF through <= coalesce(known.forgotten_through, known.first_tick - 1) THEN
        RETURN format('Nothing of %s is that old.', tbl);
    END IF;
    PERFORM dbext_private.require_summed(known.table_id, through);
    moment := dbext_private.table_tick_end(known.table_id, through);
    PERFORM dbext_private.forget_records(known.table_id, moment, sealed);
    PERFORM dbext_private.forget_changes(known.table_id, through);
    UPDATE dbext_private.tracked_table AS t SET forgotten_through = through WHERE t.table_id = known.table_id;
    RETURN format('What changed in %s up to %s is forgotten one by one; windows begin there or later.', tbl, moment);
END $$;
COMMENT ON FUNCTION dp_retain(regclass, interval) IS
    'Drops sealed mutations older than an interval. Exact sums, nodes, the ledger and what is settled stay; later windows cannot begin before.';

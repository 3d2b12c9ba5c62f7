-- The log in segments. Capture functions write straight into a child of the log, the current segment; whoever reads the log reads all of them.
-- dp_retain leads capture on to a new segment from time to time, and drops old ones whole once nobody can write to them and nothing in them is
-- needed. The log itself holds what came before the first segment, markers, baselines, and the records that are kept of dropped segments.
--
-- Whether there are segments says an administrator; when they begin and go depends on the clock and on who holds them, never on rows:
-- anybody may read the names of tables.
--
-- A session may write to a segment that was left as long as it has not heard of the new capture functions. It hears of them when it begins a
-- transaction; so those that run once the change is known to everybody are noted, and waited for. Records that are not committed hold a lock on
-- their segment, prepared transactions included.

COMMENT ON TABLE dbext_private.log_segment IS 'Segments of logs: children log_<table_id>_<segment>, which capture fills one after the other and dp_retain drops whole.';
COMMENT ON COLUMN dbext_private.tracked_table.segment IS 'Which segment of the log capture writes to; NULL: the log itself';
COMMENT ON COLUMN dbext_private.log_segment.closed_in IS 'Transaction that led capture on';
COMMENT ON COLUMN dbext_private.log_segment.writers IS 'Virtual transactions that ran once everybody could know of that; NULL: nobody has looked yet';

CREATE FUNCTION dbext_private.log_relations(table_id integer) RETURNS TABLE (relation oid)
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT l.relation FROM (
        SELECT to_regclass(dbext_private.segment_name(log_relations.table_id, NULL))::oid
        UNION ALL
        SELECT to_regclass(dbext_private.segment_name(s.table_id, s.segment))::oid FROM dbext_private.log_segment AS s WHERE s.table_id = log_relations.table_id
    ) AS l (relation) WHERE l.relation IS NOT NULL;
END $$;
COMMENT ON FUNCTION dbext_private.log_relations(integer) IS 'The log of a table and its segments.';

CREATE FUNCTION dbext_private.segment_due(table_id integer, keep interval) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    -- Four segments while records are kept, none shorter than a tick; no more while something keeps old ones from going.
    SELECT t.tracked AND b.moment <= h.boundary AND b.moment + segment_due.keep / 4 <= dbext_private.effective_now()
        AND (SELECT count(*) FROM dbext_private.log_segment AS s WHERE s.table_id = t.table_id) < 12
    FROM dbext_private.tracked_table AS t JOIN dbext_private.seal_head AS h USING (table_id)
    LEFT JOIN dbext_private.log_segment AS s ON (s.table_id, s.segment) = (t.table_id, t.segment)
    CROSS JOIN LATERAL (SELECT coalesce(s.begun_at, t.tracked_at) AS moment) AS b
    WHERE t.table_id = segment_due.table_id
$$;
COMMENT ON FUNCTION dbext_private.segment_due(integer, interval) IS 'Whether it is time for a new segment: by the clock alone.';

CREATE FUNCTION dbext_private.create_segment(table_id integer, segment integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
SET default_tablespace = '' SET default_table_access_method = heap AS $$
DECLARE
    log text := dbext_private.segment_name(table_id, NULL);
    name text := dbext_private.segment_name(table_id, segment);
BEGIN
    -- All segments count with the log's own numbers: these order the records of an entry.
    EXECUTE format('CREATE TABLE %s (number bigint DEFAULT nextval(%L)) INHERITS (%s)', name, pg_get_serial_sequence(log, 'number'), log);
    EXECUTE format('CREATE INDEX log_%s_%s_new ON %s USING brin (xid dbext_private.xid8_minmax_ops, mutated_at) WITH (pages_per_range = 32)',
        table_id, segment, name);
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', name);  -- as the log has it
    EXECUTE format('COMMENT ON TABLE %s IS %L', name, 'A part of the changelog, dropped whole when all of it is old.');
    INSERT INTO dbext_private.log_segment (table_id, segment, begun_at) VALUES (table_id, segment, dbext_private.effective_now());
    -- Default privileges may give rights to anybody.
    PERFORM dbext_private.take_back_rights(table_id);
END $$;
COMMENT ON FUNCTION dbext_private.create_segment(integer, integer) IS 'Makes a segment of a log.';

CREATE FUNCTION dbext_private.lead_on(table_id integer, keep interval, segments boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known dbext_private.tracked_table;
    fresh integer;
    due boolean;
BEGIN
    BEGIN
        -- Who closes a segment has this lock until everybody has been told.
        EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE NOWAIT', dbext_private.segment_name(table_id, NULL));
    EXCEPTION WHEN lock_not_available THEN
        RETURN;
    END;
    -- DDL that follows the table holds this row, and may have changed the rest by the time it lets go.
    SELECT t.* INTO known FROM dbext_private.tracked_table AS t WHERE t.table_id = lead_on.table_id FOR NO KEY UPDATE;
    due := CASE WHEN segments THEN dbext_private.segment_due(table_id, keep) ELSE known.segment IS NOT NULL END;
    IF NOT known.tracked OR due IS NOT TRUE THEN
        RETURN;
    ELSIF segments THEN
        fresh := (SELECT coalesce(max(s.segment), 0) + 1 FROM dbext_private.log_segment AS s WHERE s.table_id = lead_on.table_id);
        PERFORM dbext_private.create_segment(table_id, fresh);
    END IF;
    UPDATE dbext_private.log_segment AS s SET closed_in = pg_current_xact_id(), closed_at = dbext_private.effective_now()
    WHERE (s.table_id, s.segment) = (lead_on.table_id, known.segment);
    UPDATE dbext_private.tracked_table AS t SET segment = fresh WHERE t.table_id = lead_on.table_id;
    PERFORM dbext_private.write_capture(table_id);
END $$;
COMMENT ON FUNCTION dbext_private.lead_on(integer, interval, boolean) IS
    'Leads capture on to a new segment, if it is time, or without segments back to the log itself. No writer waits for it.';

CREATE FUNCTION dbext_private.note_writers(table_id integer) RETURNS void
LANGUAGE sql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
    UPDATE dbext_private.log_segment AS s SET writers = ARRAY(SELECT l.virtualxid FROM pg_locks AS l
        WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.pid <> pg_backend_pid())
    WHERE s.table_id = note_writers.table_id AND s.writers IS NULL AND s.closed_in <> pg_current_xact_id()
$$;
COMMENT ON FUNCTION dbext_private.note_writers(integer) IS
    'Notes who runs now that segments are closed. Under the lock that closing them takes as well: who starts later has heard of it.';

CREATE FUNCTION dbext_private.is_past(table_id integer, segment integer, through timestamptz, sealed dbext_private.seal_head) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := dbext_private.segment_name(table_id, segment);
    past boolean;
BEGIN
    -- Not before the moment at which it was closed is past, be there records of that time or none: that would show when it goes.
    IF NOT EXISTS (SELECT FROM dbext_private.log_segment AS s WHERE (s.table_id, s.segment) = (is_past.table_id, is_past.segment)
            AND s.closed_at <= least(through, sealed.boundary) AND s.writers IS NOT NULL
            AND NOT EXISTS (SELECT FROM pg_locks AS l WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.virtualxid = ANY (s.writers))) THEN
        RETURN false;
    END IF;
    -- From here on nobody writes to it; what is committed is seen by the statement after this.
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE MODE NOWAIT', name);
    EXECUTE format('SELECT NOT EXISTS (SELECT FROM ONLY %s AS l WHERE (l.mutated_at <= $1 AND pg_visible_in_snapshot(l.xid, $2)) IS NOT TRUE)', name)
    INTO past USING least(through, sealed.boundary), sealed.snapshot;
    RETURN past;
END $$;
COMMENT ON FUNCTION dbext_private.is_past(integer, integer, timestamptz, dbext_private.seal_head) IS
    'Whether nobody can write to a segment any more, and every record in it was taken by a seal and is as old as that.';

CREATE FUNCTION dbext_private.is_held(table_id integer, segment integer) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database()
        WHERE l.locktype = 'relation' AND l.relation = to_regclass(dbext_private.segment_name(is_held.table_id, is_held.segment))
            AND l.pid IS DISTINCT FROM pg_backend_pid())
$$;
COMMENT ON FUNCTION dbext_private.is_held(integer, integer) IS 'Whether somebody else has a segment locked, a dump for one: it is not worth looking at now.';

CREATE FUNCTION dbext_private.drop_segments(table_id integer, segments integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    names text := (SELECT string_agg(dbext_private.segment_name(table_id, s), ', ') FROM unnest(segments) AS s);
BEGIN
    IF names IS NOT NULL THEN
        -- First forgotten, then dropped: what is known of is guarded.
        DELETE FROM dbext_private.log_segment AS s WHERE s.table_id = drop_segments.table_id AND s.segment = ANY (segments);
        EXECUTE format('DROP TABLE %s', names);
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.drop_segments(integer, integer[]) IS 'Drops segments of a log.';

CREATE FUNCTION dbext_private.follow_segments(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lost integer[] := ARRAY(SELECT s.segment FROM dbext_private.log_segment AS s
        WHERE s.table_id = follow_segments.table_id AND to_regclass(dbext_private.segment_name(s.table_id, s.segment)) IS NULL);
BEGIN
    IF lost <> '{}' THEN
        DELETE FROM dbext_private.log_segment AS s WHERE s.table_id = follow_segments.table_id AND s.segment = ANY (lost);
        UPDATE dbext_private.tracked_table AS t SET segment = NULL WHERE t.table_id = follow_segments.table_id AND t.segment = ANY (lost);
        PERFORM dbext_private.note_schema_event(table_id, 'changelog', 'a part of the changelog was dropped, with what no seal had taken of it; dp_rebase records it');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.follow_segments(integer) IS
    'Forgets segments that were dropped by hand and marks the table; capture, if it wrote to one of them, goes back to the log itself.';

CREATE FUNCTION dbext_private.forget_segments(table_id integer, through timestamptz, sealed dbext_private.seal_head, OUT went bigint, OUT stayed bigint, OUT held boolean)
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    segment integer;
    past integer[] := '{}';
BEGIN
    held := false;
    FOR segment IN SELECT s.segment FROM dbext_private.log_segment AS s WHERE s.table_id = forget_segments.table_id AND s.closed_in IS NOT NULL ORDER BY 1 LOOP
        held := dbext_private.is_held(table_id, segment);
        EXIT WHEN held OR NOT dbext_private.is_past(table_id, segment, through, sealed);
        past := past || segment;
    END LOOP;
    IF past <> '{}' THEN
        SELECT f.went, f.stayed INTO went, stayed FROM dbext_private.forget_records(table_id, through, sealed, past) AS f;
        FOREACH segment IN ARRAY past LOOP
            EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE NOWAIT', dbext_private.segment_name(table_id, segment));
        END LOOP;
        PERFORM dbext_private.drop_segments(table_id, past);
    END IF;
EXCEPTION WHEN lock_not_available OR object_in_use THEN
    -- A dump or a reader came in between: all of this is undone.
    went := NULL;
    held := true;
END $$;
COMMENT ON FUNCTION dbext_private.forget_segments(integer, timestamptz, dbext_private.seal_head) IS
    'Drops the oldest segments that are wholly past, once what is needed of them is in the log. It waits for nobody: held says that somebody had one.';

CREATE FUNCTION dbext_private.keep_segments(table_id integer, through timestamptz, sealed dbext_private.seal_head,
    OUT went bigint, OUT stayed bigint, OUT held boolean)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    held := false;
    BEGIN
        -- One at a time, and not beside VACUUM. Who closed a segment had this lock until everybody had been told.
        EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE NOWAIT', dbext_private.segment_name(table_id, NULL));
    EXCEPTION WHEN lock_not_available THEN
        held := true;
        RETURN;
    END;
    PERFORM dbext_private.note_writers(table_id);
    IF through IS NOT NULL THEN
        SELECT f.* INTO went, stayed, held FROM dbext_private.forget_segments(table_id, through, sealed) AS f;
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.keep_segments(integer, timestamptz, dbext_private.seal_head) IS
    'Notes who may still write to segments that were left, and drops those that are past.';

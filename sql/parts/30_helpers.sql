-- Who calls, what time it is, and where ticks end. Calendar arithmetic is PostgreSQL's alone.

CREATE FUNCTION dbext_private.caller() RETURNS name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN current_setting('role') IN ('none', '') THEN session_user ELSE current_setting('role')::name END
$$;
COMMENT ON FUNCTION dbext_private.caller() IS 'The role that acts, seen through any number of SECURITY DEFINER functions.';

-- Roles belong to the cluster, so that membership alone says nothing about this database; privileges on a schema belong to the database.
CREATE FUNCTION dbext_private.is_admitted(role_name name) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT has_schema_privilege(role_name, 'dbext', 'USAGE')
$$;
COMMENT ON FUNCTION dbext_private.is_admitted(name) IS 'Whether a role may use dbext in this database at all: by USAGE on schema dbext.';

CREATE FUNCTION dbext_private.is_admin(role_name name) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_has_role(role_name, 'dbext_admin', 'MEMBER') AND dbext_private.is_admitted(role_name)
$$;
COMMENT ON FUNCTION dbext_private.is_admin(name) IS 'Whether a role is a member of dbext_admin admitted to this database (superusers are).';

CREATE FUNCTION dbext_private.is_analyst(role_name name) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT (pg_has_role(role_name, 'dbext_analyst', 'MEMBER') OR pg_has_role(role_name, 'dbext_admin', 'MEMBER'))
        AND dbext_private.is_admitted(role_name)
$$;
COMMENT ON FUNCTION dbext_private.is_analyst(name) IS 'Whether a role may declare releases and ask questions: members of dbext_analyst and dbext_admin that are admitted.';

CREATE FUNCTION dbext_private.require_admin() RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT dbext_private.is_admin(dbext_private.caller()) THEN
        RAISE EXCEPTION 'only members of dbext_admin who are admitted to this database may do this' USING ERRCODE = 'DP005',
            HINT = format('A superuser may GRANT dbext_admin, and USAGE ON SCHEMA dbext, dp_release, TO %I.', dbext_private.caller());
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.require_admin() IS 'Refuses callers who are not members of dbext_admin.';

CREATE FUNCTION dbext_private.effective_now() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    setting text := current_setting('dbext.now', true);
    moment timestamptz;
BEGIN
    IF coalesce(setting, '') = '' OR NOT dbext_private.is_admin(dbext_private.caller()) THEN
        RETURN clock_timestamp();
    END IF;
    moment := setting;
    RETURN CASE WHEN isfinite(moment) THEN least(moment, clock_timestamp()) ELSE clock_timestamp() END;
END $$;
COMMENT ON FUNCTION dbext_private.effective_now() IS
    'The time at which mutations happen: the clock, or an earlier dbext.now that a member of dbext_admin set to replay history. Anyone else''s setting is ignored.';

-- Boundary b_i ends tick i: tick i = (b_(i-1), b_i]. b_0 is local midnight of Monday 2000-01-03 (months: of 2000-01-01).
-- A local midnight that a clock change skips is the moment of the change. A whole day that a zone skipped is an empty tick.
CREATE FUNCTION dbext_private.tick_end(kind text, size bigint, zone text, tick bigint) RETURNS timestamptz
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE kind
        WHEN 'day' THEN (date '2000-01-03' + (size * tick)::integer)::timestamp AT TIME ZONE zone
        WHEN 'month' THEN (timestamp '2000-01-01' + make_interval(months => (size * tick)::integer)) AT TIME ZONE zone
        WHEN 'fixed' THEN (timestamp '2000-01-03' AT TIME ZONE zone) + (size * tick) * interval '1 microsecond'
    END
$$;
COMMENT ON FUNCTION dbext_private.tick_end(text, bigint, text, bigint) IS
    'The boundary that ends a tick. kind: day, month or fixed; size: days, months or microseconds per tick; zone: a name of pg_timezone_names.';

CREATE FUNCTION dbext_private.tick_of(kind text, size bigint, zone text, moment timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    local_time timestamp := moment AT TIME ZONE zone;
    tick bigint;
BEGIN
    -- An estimate from local time, put right by the boundaries themselves: they are what a seal compares with.
    tick := CASE kind
        WHEN 'day' THEN floor((local_time::date - date '2000-01-03')::numeric / size)
        WHEN 'month' THEN floor(((extract(year FROM local_time) - 2000) * 12 + extract(month FROM local_time) - 1) / size)
        WHEN 'fixed' THEN floor(extract(epoch FROM moment - (timestamp '2000-01-03' AT TIME ZONE zone)) * 1000000 / size)
    END;
    WHILE dbext_private.tick_end(kind, size, zone, tick) >= moment LOOP
        tick := tick - 1;
    END LOOP;
    WHILE dbext_private.tick_end(kind, size, zone, tick) < moment LOOP
        tick := tick + 1;
    END LOOP;
    RETURN tick;
END $$;
COMMENT ON FUNCTION dbext_private.tick_of(text, bigint, text, timestamptz) IS
    'The tick that holds a moment: the i with b_(i-1) < moment <= b_i. A moment that is a boundary is the end of its tick.';

CREATE FUNCTION dbext_private.table_tick_end(table_id integer, tick bigint) RETURNS timestamptz
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT dbext_private.tick_end(t.tick_kind, t.tick_size, t.time_zone, table_tick_end.tick)
    FROM dbext_private.tracked_table AS t WHERE t.table_id = table_tick_end.table_id
$$;
COMMENT ON FUNCTION dbext_private.table_tick_end(integer, bigint) IS 'tick_end for the tick and zone of a tracked table.';

CREATE FUNCTION dbext_private.table_tick_of(table_id integer, moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT dbext_private.tick_of(t.tick_kind, t.tick_size, t.time_zone, table_tick_of.moment)
    FROM dbext_private.tracked_table AS t WHERE t.table_id = table_tick_of.table_id
$$;
COMMENT ON FUNCTION dbext_private.table_tick_of(integer, timestamptz) IS 'tick_of for the tick and zone of a tracked table.';

CREATE FUNCTION dbext_private.tick_ends(table_id integer, first_tick bigint, last_tick bigint) RETURNS timestamptz[]
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT array_agg(dbext_private.tick_end(t.tick_kind, t.tick_size, t.time_zone, tick) ORDER BY tick)
    FROM dbext_private.tracked_table AS t CROSS JOIN generate_series(tick_ends.first_tick, tick_ends.last_tick) AS tick
    WHERE t.table_id = tick_ends.table_id
$$;
COMMENT ON FUNCTION dbext_private.tick_ends(integer, bigint, bigint) IS 'The boundaries that end consecutive ticks of a tracked table, in order.';

CREATE FUNCTION dbext_private.open_tick(table_id integer) RETURNS bigint
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT h.tick + 1 FROM dbext_private.seal_head AS h WHERE h.table_id = open_tick.table_id
$$;
COMMENT ON FUNCTION dbext_private.open_tick(integer) IS 'The first tick of a tracked table that is not sealed.';

CREATE FUNCTION dbext_private.note_schema_event(table_id integer, kind text, description text) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO dbext_private.schema_event (table_id, from_tick, kind, description)
    VALUES (note_schema_event.table_id, dbext_private.open_tick(note_schema_event.table_id), note_schema_event.kind, note_schema_event.description)
    ON CONFLICT DO NOTHING
$$;
COMMENT ON FUNCTION dbext_private.note_schema_event(integer, text, text) IS 'Marks a tracked table from its open tick on; said once while the mark is open.';

-- Following the schema. DDL must never break the application's writes, and what it does to capture must never go unnoticed: event
-- triggers follow at once, every seal looks again, and what cannot be repaired is marked from the open tick on.

CREATE FUNCTION dbext_private.current_cluster(OUT system_identifier text, OUT database_oid oid, OUT timeline text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT (SELECT c.system_identifier::text FROM pg_control_system() AS c), d.oid, left(pg_walfile_name(pg_current_wal_lsn()), 8)
    FROM pg_database AS d WHERE d.datname = current_database()
$$;
COMMENT ON FUNCTION dbext_private.current_cluster() IS 'Where we are: snapshots stored elsewhere mean nothing here.';

CREATE FUNCTION dbext_private.is_home() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM dbext_private.cluster_identity AS k JOIN dbext_private.current_cluster() AS c
        ON (k.system_identifier, k.database_oid, k.timeline) = (c.system_identifier, c.database_oid, c.timeline))
$$;
COMMENT ON FUNCTION dbext_private.is_home() IS 'Whether this is the cluster, database and timeline that the stored snapshots belong to.';

CREATE FUNCTION dbext_private.remember_cluster() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO dbext_private.cluster_identity (system_identifier, database_oid, timeline)
    SELECT c.system_identifier, c.database_oid, c.timeline FROM dbext_private.current_cluster() AS c ON CONFLICT DO NOTHING;
    IF NOT dbext_private.is_home() THEN
        PERFORM dbext_private.refuse('this database was restored, upgraded or promoted since it was last sealed',
            'A superuser accepts that with SELECT dp_confirm_upgrade().', 'DP031');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.remember_cluster() IS 'Stores the identity of the cluster at the first dp_track; refuses elsewhere.';

CREATE FUNCTION dbext_private.locate(table_id integer) RETURNS oid
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.oid FROM dbext_private.tracked_table AS t JOIN pg_class AS c ON c.oid = t.relation OR c.relname = t.table_name
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM pg_trigger AS g JOIN pg_proc AS p ON p.oid = g.tgfoid
        WHERE g.tgrelid = c.oid AND p.pronamespace = 'dbext_private'::regnamespace AND p.proname ~ ('^capture_[a-z]+_' || t.table_id || '$'))) AS captured (here)
    WHERE t.table_id = locate.table_id AND (captured.here AND c.oid = t.relation OR (n.nspname, c.relname) = (t.schema_name, t.table_name))
    ORDER BY captured.here AND c.oid = t.relation DESC LIMIT 1
$$;
COMMENT ON FUNCTION dbext_private.locate(integer) IS
    'The relation of a tracked table: the one of its OID if our triggers are on it (renamed), else the one of its name (restored). NULL: dropped.';

CREATE FUNCTION dbext_private.follow_names(table_id integer, located oid) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF located = (SELECT t.relation FROM dbext_private.tracked_table AS t WHERE t.table_id = follow_names.table_id) THEN
        UPDATE dbext_private.tracked_table AS t SET schema_name = n.nspname, table_name = c.relname
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE t.table_id = follow_names.table_id AND c.oid = located AND (t.schema_name, t.table_name) IS DISTINCT FROM (n.nspname::text, c.relname::text);
        UPDATE dbext_private.tracked_column AS k SET column_name = a.attname FROM pg_attribute AS a
        WHERE k.table_id = follow_names.table_id AND a.attrelid = located AND a.attnum = k.attribute_number AND NOT a.attisdropped AND a.attname <> k.column_name;
    ELSE
        UPDATE dbext_private.tracked_table AS t SET relation = located WHERE t.table_id = follow_names.table_id;
        UPDATE dbext_private.tracked_column AS k SET attribute_number = a.attnum FROM pg_attribute AS a
        WHERE k.table_id = follow_names.table_id AND a.attrelid = located AND a.attname = k.column_name AND NOT a.attisdropped AND a.attnum <> k.attribute_number;
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.follow_names(integer, oid) IS
    'While the OID is the known one, it decides and names follow; in a restored database names decide and numbers follow.';

CREATE FUNCTION dbext_private.follow_columns(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lost dbext_private.tracked_column;
BEGIN
    FOR lost IN
        UPDATE dbext_private.tracked_column AS k SET gone = true FROM dbext_private.tracked_table AS t
        WHERE t.table_id = follow_columns.table_id AND k.table_id = t.table_id AND NOT k.gone AND NOT EXISTS (
            SELECT FROM pg_attribute AS a WHERE a.attrelid = t.relation AND a.attnum = k.attribute_number AND NOT a.attisdropped
                AND format_type(dbext_private.base_type(a.atttypid), -1) = k.type_name)
        RETURNING k.*
    LOOP
        PERFORM dbext_private.note_lost_column(lost);
    END LOOP;
    -- DROP TYPE ... CASCADE took the columns of the run-time tables along: such a column is forgotten, its number is not used again.
    DELETE FROM dbext_private.tracked_column AS k
    WHERE k.table_id = follow_columns.table_id AND k.gone AND NOT k.is_unit AND to_regtype(k.type_name) IS NULL;
    PERFORM dbext_private.write_capture(table_id);
END $$;
COMMENT ON FUNCTION dbext_private.follow_columns(integer) IS 'Notes tracked columns that are gone and makes the capture functions fit.';

CREATE FUNCTION dbext_private.follow_guards(table_id integer, located oid) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    event text;
    reason text := dbext_private.why_untrackable(located);
    unit smallint[];
BEGIN
    FOR event IN SELECT e FROM unnest(ARRAY['insert', 'update', 'delete', 'truncate']) AS e
        WHERE e <> ALL (dbext_private.triggers_in_place(follow_guards.table_id, located))
    LOOP
        PERFORM dbext_private.note_schema_event(table_id, 'trigger', format('the trigger that captures %s is missing or disabled', upper(event)));
    END LOOP;
    IF reason IS NOT NULL THEN
        PERFORM dbext_private.note_schema_event(table_id, 'table', 'triggers no longer see every change of the table: ' || reason);
    END IF;
    SELECT array_agg(k.attribute_number) INTO unit FROM dbext_private.tracked_column AS k WHERE k.table_id = follow_guards.table_id AND k.is_unit;
    IF dbext_private.unit_index(located, unit) IS NULL THEN
        PERFORM dbext_private.note_schema_event(table_id, 'unit', 'no unique index enforces the privacy unit any more');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.follow_guards(integer, oid) IS 'Marks a table whose triggers, kind or unique key no longer guarantee that capture is whole.';

CREATE FUNCTION dbext_private.follow_schema(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    located oid := dbext_private.locate(table_id);
BEGIN
    IF NOT (SELECT t.tracked FROM dbext_private.tracked_table AS t WHERE t.table_id = follow_schema.table_id) THEN
        RETURN;
    ELSIF located IS NULL THEN
        PERFORM dbext_private.note_schema_event(table_id, 'table', 'the table was dropped');
        UPDATE dbext_private.tracked_table AS t SET tracked = false WHERE t.table_id = follow_schema.table_id;
        RETURN;
    END IF;
    PERFORM dbext_private.follow_names(table_id, located);
    PERFORM dbext_private.follow_columns(table_id);
    PERFORM dbext_private.follow_guards(table_id, located);
END $$;
COMMENT ON FUNCTION dbext_private.follow_schema(integer) IS 'Brings the catalog in line with a tracked table as it is now, marking what breaks capture.';

CREATE FUNCTION dbext_private.follow_quietly(tables integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    table_number integer;
BEGIN
    FOREACH table_number IN ARRAY tables LOOP
        BEGIN
            PERFORM dbext_private.follow_schema(table_number);
        EXCEPTION WHEN OTHERS THEN
            RAISE WARNING 'dbext could not follow this change of a tracked table (SQLSTATE %)', SQLSTATE;
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION dbext_private.follow_quietly(integer[]) IS 'follow_schema for event triggers: its own errors never stop the command.';

CREATE FUNCTION dbext_private.follow_command() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tables integer[];
BEGIN
    SELECT array_agg(t.table_id ORDER BY t.table_id) INTO tables FROM dbext_private.tracked_table AS t
    WHERE t.tracked AND (tg_tag <> 'ALTER TABLE' OR EXISTS (
        SELECT FROM pg_event_trigger_ddl_commands() AS c WHERE c.classid = 'pg_class'::regclass AND c.objid = t.relation));
    IF tables IS NOT NULL AND dbext_private.is_home() THEN
        PERFORM dbext_private.follow_quietly(tables);
    END IF;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'dbext could not follow this command (SQLSTATE %)', SQLSTATE;
END $$;
COMMENT ON FUNCTION dbext_private.follow_command() IS 'Runs after DDL that may concern tracked tables; a database being restored is left alone.';

CREATE FUNCTION dbext_private.follow_drop() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tables integer[];
BEGIN
    SELECT array_agg(DISTINCT t.table_id) INTO tables
    FROM pg_event_trigger_dropped_objects() AS o JOIN dbext_private.tracked_table AS t
        ON o.classid = 'pg_class'::regclass AND o.objid = t.relation OR o.address_names[1:2] = ARRAY[t.schema_name, t.table_name]
    WHERE t.tracked;
    IF tables IS NOT NULL AND dbext_private.is_home() THEN
        PERFORM dbext_private.follow_quietly(tables);
    END IF;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'dbext could not follow this command (SQLSTATE %)', SQLSTATE;
END $$;
COMMENT ON FUNCTION dbext_private.follow_drop() IS 'Runs after anything was dropped.';

CREATE EVENT TRIGGER dbext_follow_command ON ddl_command_end
    WHEN TAG IN ('ALTER TABLE', 'ALTER TRIGGER', 'ALTER SCHEMA', 'ALTER EXTENSION')
    EXECUTE FUNCTION dbext_private.follow_command();
COMMENT ON EVENT TRIGGER dbext_follow_command IS 'Keeps capture in step with renamed, dropped and retyped columns and tables.';
CREATE EVENT TRIGGER dbext_follow_drop ON sql_drop EXECUTE FUNCTION dbext_private.follow_drop();
COMMENT ON EVENT TRIGGER dbext_follow_drop IS 'Marks tracked tables that were dropped or lost a capture trigger.';

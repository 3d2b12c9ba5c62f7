-- Only a superuser drops the extension. Whoever owns the schema of its functions (the owner of the database, of schema public since
-- PostgreSQL 15) could otherwise drop that schema, with it the extension, and with the extension the ledger.
--
-- A trigger on sql_drop could not help: it goes with the extension before it is looked for. So a cursor is opened on a table of the
-- extension before such a command runs, and PostgreSQL drops no table that the session itself has open.

CREATE TABLE dbext_private.only_a_superuser_drops_dbext (
    never boolean CONSTRAINT never_filled CHECK (false)
);
COMMENT ON TABLE dbext_private.only_a_superuser_drops_dbext IS
    'Always empty. It is held open while others than superusers drop schemas, so that a drop that would reach it fails and names it.';

CREATE FUNCTION dbext_private.note_dropper() RETURNS event_trigger
LANGUAGE plpgsql SECURITY INVOKER AS $$
BEGIN
    PERFORM pg_catalog.set_config('dbext_guard.dropper', current_user, true);
END $$;
COMMENT ON FUNCTION dbext_private.note_dropper() IS
    'Notes whose rights a drop has, for guard_drop, which runs next. A definer function cannot see that, and who logged in may be someone else.';

CREATE FUNCTION dbext_private.guard_drop() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held refcursor;
BEGIN
    IF NOT coalesce((SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_setting('dbext_guard.dropper', true)), false) THEN
        OPEN held FOR SELECT FROM dbext_private.only_a_superuser_drops_dbext;
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.guard_drop() IS 'Holds a table of the extension open until the transaction ends, unless a superuser drops.';

CREATE EVENT TRIGGER dbext_guard_1_note ON ddl_command_start
    WHEN TAG IN ('DROP SCHEMA', 'DROP OWNED', 'DROP EXTENSION')
    EXECUTE FUNCTION dbext_private.note_dropper();
COMMENT ON EVENT TRIGGER dbext_guard_1_note IS 'Notes who drops, just before dbext_guard_2_hold: event triggers fire in order of name.';
CREATE EVENT TRIGGER dbext_guard_2_hold ON ddl_command_start
    WHEN TAG IN ('DROP SCHEMA', 'DROP OWNED', 'DROP EXTENSION')
    EXECUTE FUNCTION dbext_private.guard_drop();
COMMENT ON EVENT TRIGGER dbext_guard_2_hold IS 'Keeps everybody but superusers from dropping the extension with a schema.';

CREATE FUNCTION dbext_private.guard_parts() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held record;
BEGIN
    SELECT o.object_identity AS name, t.schema_name, t.table_name INTO held FROM pg_event_trigger_dropped_objects() AS o
    CROSS JOIN LATERAL regexp_match(o.object_name, '^(log|deferred|admission|change|row)_([0-9]{1,9})(?:_([0-9]{1,9}))?$') AS m (parts)
    JOIN dbext_private.tracked_table AS t ON t.table_id = m.parts[2]::integer
    WHERE o.object_type = 'table' AND o.schema_name = 'dbext_private' AND CASE WHEN m.parts[3] IS NULL
        THEN EXISTS (SELECT FROM dbext_private.seal_head AS h WHERE h.table_id = t.table_id)
        ELSE EXISTS (SELECT FROM dbext_private.log_segment AS s WHERE (s.table_id, s.segment) = (t.table_id, m.parts[3]::integer)) END LIMIT 1;
    -- pg_restore --clean drops what it makes again. No other client turns this setting off.
    IF FOUND AND current_setting('check_function_bodies')::boolean THEN
        PERFORM dbext_private.refuse(format('%s holds a part of what was recorded of table %I.%I', held.name, held.schema_name, held.table_name),
            'dp_retain(..., segments => true) drops parts of the changelog once they are past, dp_untrack ends capture, DROP EXTENSION dbext CASCADE takes everything.', 'DP004');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.guard_parts() IS
    'Refuses to drop tables by hand that capture writes to or that hold what was captured: writers would fail, and nobody could tell what is lost.';

CREATE EVENT TRIGGER dbext_guard_3_parts ON sql_drop WHEN TAG IN ('DROP TABLE')
    EXECUTE FUNCTION dbext_private.guard_parts();
COMMENT ON EVENT TRIGGER dbext_guard_3_parts IS 'Keeps run-time tables from being dropped by hand.';
ALTER EVENT TRIGGER dbext_guard_3_parts ENABLE ALWAYS;
-- A session that calls itself a replica fires no ordinary triggers.
ALTER EVENT TRIGGER dbext_guard_1_note ENABLE ALWAYS;
ALTER EVENT TRIGGER dbext_guard_2_hold ENABLE ALWAYS;

CREATE FUNCTION dbext_private.refuse_foreign_types() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept record;
BEGIN
    SELECT g.tgrelid::regclass AS name, k.column_name INTO kept
    FROM pg_trigger AS g JOIN pg_proc AS p ON p.oid = g.tgfoid AND p.pronamespace = 'dbext_private'::regnamespace AND p.proname ~ '^capture_[a-z]+_[0-9]+$'
    JOIN dbext_private.tracked_column AS k ON k.table_id = substring(p.proname FROM '[0-9]+$')::integer AND NOT k.gone
    JOIN dbext_private.recorded_columns(k.table_id) AS r ON r.number = k.position
    JOIN pg_attribute AS a ON a.attrelid = g.tgrelid AND a.attname = k.column_name AND NOT a.attisdropped
    JOIN pg_type AS y ON y.oid = dbext_private.base_type(a.atttypid) AND y.oid <> r.type_id
    JOIN pg_roles AS o ON o.oid = y.typowner AND NOT o.rolsuper LIMIT 1;
    IF FOUND THEN
        PERFORM dbext_private.refuse(format('column "%s" of table %s is captured: it cannot be given a type of a role that is no superuser while dbext cannot follow',
            kept.column_name, kept.name), 'Try again; in a database that was restored or promoted a superuser first runs SELECT dp_confirm_upgrade().', 'DP031');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.refuse_foreign_types() IS
    'Refuses commands that could not be followed and left capture with a type whose owner writes its casts: those would run with the rights of dbext_owner.';

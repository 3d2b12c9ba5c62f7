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
-- A session that calls itself a replica fires no ordinary triggers.
ALTER EVENT TRIGGER dbext_guard_1_note ENABLE ALWAYS;
ALTER EVENT TRIGGER dbext_guard_2_hold ENABLE ALWAYS;

-- Every owner, grant and revoke. Nothing is granted to PUBLIC; dbext_owner owns everything but what only a superuser may change.

DO $$
DECLARE
    object record;
BEGIN
    -- Tables, views and sequences.
    FOR object IN
        SELECT c.oid::pg_catalog.regclass AS name, c.relname, CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind
        FROM pg_catalog.pg_class AS c
        WHERE c.relnamespace IN ('dbext'::pg_catalog.regnamespace, 'dbext_private'::pg_catalog.regnamespace) AND c.relkind IN ('r', 'v')
    LOOP
        IF object.relname OPERATOR(pg_catalog.<>) 'runtime' THEN
            EXECUTE pg_catalog.format('ALTER %s %s OWNER TO dbext_owner', object.kind, object.name);
        END IF;
    END LOOP;

    -- The extension's own functions and procedures: no rights for PUBLIC, owned by dbext_owner unless they must act as superuser.
    FOR object IN
        SELECT p.oid::pg_catalog.regprocedure AS name, p.proname
        FROM pg_catalog.pg_depend AS d
        JOIN pg_catalog.pg_extension AS e ON e.oid OPERATOR(pg_catalog.=) d.refobjid AND e.extname OPERATOR(pg_catalog.=) 'dbext'
        JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) d.objid
        WHERE d.deptype OPERATOR(pg_catalog.=) 'e' AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
            AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', object.name);
        IF object.proname NOT IN ('boot', 'in_second_session', 'hold_name', 'hold_types', 'log_partition', 'adopt_partition', 'release_partition') THEN
            EXECUTE pg_catalog.format('ALTER ROUTINE %s OWNER TO dbext_owner', object.name);
        END IF;
    END LOOP;

    -- Types made for results.
    FOR object IN
        SELECT t.oid::pg_catalog.regtype AS name
        FROM pg_catalog.pg_type AS t JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) t.typrelid AND c.relkind OPERATOR(pg_catalog.=) 'c'
        WHERE t.typnamespace IN ('dbext'::pg_catalog.regnamespace, 'dbext_private'::pg_catalog.regnamespace)
    LOOP
        EXECUTE pg_catalog.format('ALTER TYPE %s OWNER TO dbext_owner', object.name);
    END LOOP;
END $$;

-- Where the server finds its code and itself is a superuser's business; dbext_owner may only use it through these two.
REVOKE ALL ON dbext_private.runtime FROM PUBLIC;
-- It has no key, and a publication FOR ALL TABLES would refuse to have it changed.
ALTER TABLE dbext_private.runtime REPLICA IDENTITY FULL;
GRANT EXECUTE ON FUNCTION dbext_private.boot(), dbext_private.in_second_session(text, jsonb) TO dbext_owner;
-- Partitions belong to whoever made them: their triggers and rows are a superuser's business, on behalf of dbext_owner alone.
GRANT EXECUTE ON FUNCTION dbext_private.log_partition(integer, oid, "char", timestamptz), dbext_private.adopt_partition(integer, oid),
    dbext_private.release_partition(integer, oid), dbext_private.hold_name(oid), dbext_private.hold_types(oid) TO dbext_owner;

-- The ledger is appended to; its trigger says so again to whoever has more rights.
REVOKE UPDATE, DELETE, TRUNCATE ON dbext_private.ledger FROM dbext_owner;

-- Readers: public views and release tables (the latter are granted column by column when they are made). The roles are the cluster's;
-- USAGE on schemas dbext and dp_release, which admits somebody to this database, is granted by a superuser role by role.
GRANT SELECT ON dbext.tracked_table, dbext.entry_type, dbext.column_bounds, dbext.schema_event, dbext.release_status, dbext.budget_status, dbext.budget_use, dbext.allowance, dbext.table_grant,
        dbext.audit_status, dbext.age_risk
    TO dbext_reader, dbext_analyst, dbext_admin;
GRANT EXECUTE ON FUNCTION dbext_private.public_moment(integer, bigint), dbext_private.public_subject(integer),
    dbext_private.public_span(text, bigint), dbext_private.budget_figures(), dbext_private.budget_uses(), dbext_private.age_risks(), dbext_private.allowance_figures(), dbext_private.visible_grants()
    TO dbext_reader, dbext_analyst, dbext_admin;

-- What readers of a release may put together from it; each call checks that the caller may read the release table.
GRANT EXECUTE ON FUNCTION
    dp_range(text, text, text, text[]),
    dp_range(text, timestamptz, timestamptz, text[]),
    dp_range_stats(text, text, text),
    dp_restated(text),
    dp_range_stats(text, timestamptz, timestamptz)
    TO dbext_reader, dbext_analyst, dbext_admin;

-- Analysts: declare, explain, drop and ask. Each call also checks the caller's rights to the table.
GRANT EXECUTE ON FUNCTION
    dp_create_release,
    dp_plan_release,
    dp_explain_release(text),
    dp_drop_release(text),
    dp_window_count(regclass, text, text, text, text, numeric, text),
    dp_window_count(regclass, timestamptz, timestamptz, text, text, numeric, text),
    dp_window_stats(regclass, text, text, text, text, numeric, text),
    dp_window_sum(regclass, text, text, text, text, text, numeric, text),
    dp_window_stats(regclass, timestamptz, timestamptz, text, text, numeric, text),
    dp_set_tolerance(text, numeric),
    dp_risk_curve(text, text, integer, integer),
    dp_plan_ageing(regclass, text, double precision, double precision, integer, integer)
    TO dbext_analyst, dbext_admin;

-- Administrators: constraints, budgets, public keys, publication, the ledger and the counts of seals.
GRANT SELECT ON dbext.ledger, dbext.seal, dbext.capture_check TO dbext_admin;
GRANT USAGE ON SCHEMA dbext_private TO dbext_admin;
GRANT EXECUTE ON FUNCTION
    dp_add_constraint(regclass, text, text, integer, interval, text),
    dp_alter_constraint(regclass, text, integer, interval, text),
    dp_set_budget(regclass, numeric, numeric, text, numeric),
    dp_accept_delta(regclass, numeric),
    dp_set_process(regclass, text, double precision[], double precision[], text),
    dp_audit(),
    dp_mark_public(regclass, text),
    dp_publish_to(text, text),
    dbext_private.own_lineage(),
    dbext_private.targeted_releases(),
    dbext_private.release_structure(integer),
    dbext_private.note_delivered(integer, bigint),
    dp_grant(regclass, text, text[]),
    dp_revoke(regclass, text),
    dp_set_allowance(regclass, text, numeric, numeric),
    dp_require_witness(interval),
    dbext_private.knows_ledger(bigint, text, bigint),
    dbext_private.unknown_rows(text[]),
    dbext_private.accepted_rows(text[]),
    dbext_private.rows_to_witness(bigint, bigint[]),
    dbext_private.note_behind(),
    dbext_private.vouch(),
    dbext_private.was_witnessed(),
    dp_bounds(regclass, text, numeric, numeric, numeric),
    dbext_private.record_public_column(regclass, text),
    dbext_private.sealable_tables(),
    dbext_private.due_releases(),
    dbext_private.table_label(integer),
    dbext_private.draw_release(integer),
    dbext_private.publish_release(integer),
    dbext_private.note_release_error(integer, text),
    dbext_private.failing(text, text)
    TO dbext_admin;
GRANT EXECUTE ON PROCEDURE dp_publish() TO dbext_admin;

-- Capture and seal.
GRANT EXECUTE ON FUNCTION
    dp_track(regclass, interval, text, text[], text[], integer, text),
    dp_untrack(regclass),
    dp_retain(regclass, interval, boolean),
    dbext_private.caller(),
    dbext_private.is_admin(name),
    dbext_private.is_admitted(name),
    dbext_private.effective_now(),
    dbext_private.capture_name(integer, text),
    dbext_private.refuse_tracking_here(oid, name),
    dbext_private.begin_tracking(oid, interval, text, text[], text[], integer, text, name),
    dbext_private.baseline_statement(integer),
    dbext_private.drops_triggers(oid, text),
    dbext_private.lock_statement(oid, boolean),
    dbext_private.only_vacuumed(oid, boolean),
    dbext_private.lock_in_turns(oid, boolean),
    dbext_private.trigger_commands(integer, oid),
    dbext_private.untrigger_commands(oid),
    dbext_private.partition_tree(oid),
    dp_rebase(regclass),
    dp_mark(regclass, text),
    dp_recount(regclass),
    dbext_private.begin_rebase(oid, name, timestamptz),
    dbext_private.finish_rebase(integer, name),
    dbext_private.begin_recount(oid, name),
    dbext_private.finish_recount(oid, name),
    dbext_private.finish_tracking(integer, name),
    dbext_private.end_tracking(oid, name),
    dbext_private.drop_capture(oid, name),
    dbext_private.seal_table(integer)
    TO dbext_admin;

-- What no trigger saw: reported to administrators, marked by them if they wish, and made good by a re-base: settled images become those that
-- the table holds, one ordinary mutation per entry that differs, admitted and charged like any other.

CREATE FUNCTION dbext_private.close_marks(table_id integer) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    UPDATE dbext_private.schema_event AS e
    SET through_tick = greatest(dbext_private.open_tick(e.table_id), dbext_private.table_tick_of(e.table_id, dbext_private.effective_now()))
    WHERE e.table_id = close_marks.table_id AND e.through_tick IS NULL
$$;
COMMENT ON FUNCTION dbext_private.close_marks(integer) IS 'Ends the marks of a table with the tick in which its rows are recorded anew.';

CREATE FUNCTION dbext_private.require_tracked(relation oid, owner_name name) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    table_number integer;
BEGIN
    PERFORM dbext_private.require_table_owner(relation, owner_name);
    PERFORM dbext_private.require_lock(relation);
    PERFORM dbext_private.hold_name(relation);
    PERFORM dbext_private.require_own_code(relation, owner_name);
    PERFORM dbext_private.remember_cluster();
    SELECT t.table_id INTO table_number FROM dbext_private.tracked_table AS t WHERE t.relation = require_tracked.relation AND t.tracked;
    IF NOT FOUND THEN
        PERFORM dbext_private.refuse(format('table %s is not tracked', relation::regclass), 'dp_track takes it up.', 'DP002');
    END IF;
    -- What is read of the changelog in the end is held from the beginning, before any row that dp_retain waits for while it drops segments.
    EXECUTE format('LOCK TABLE %s IN ACCESS SHARE MODE', dbext_private.segment_name(table_number, NULL));
    PERFORM dbext_private.hold_types(to_regclass(format('dbext_private.log_%s', table_number)));
    PERFORM dbext_private.follow_schema(table_number);
    IF NOT dbext_private.can_capture(table_number) THEN
        PERFORM dbext_private.refuse(format('the privacy unit of table %s is no longer what was tracked', relation::regclass),
            'dp_track takes the table up again once its unit has the name, type and collation of before.');
    END IF;
    RETURN table_number;
END $$;
COMMENT ON FUNCTION dbext_private.require_tracked(oid, name) IS 'The number of a table that is tracked, owned by the caller and locked; refusals otherwise.';

CREATE FUNCTION dbext_private.begin_rebase(relation oid, owner_name name, moment timestamptz) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET lock_timeout = '2s' AS $$
DECLARE
    table_number integer;
BEGIN
    table_number := dbext_private.require_tracked(relation, owner_name);
    UPDATE dbext_private.tracked_table AS t SET tracked = false WHERE t.table_id = table_number;
    PERFORM dbext_private.mark_truncation(table_number, least(moment, dbext_private.effective_now()));
    PERFORM dbext_private.choose_triggers(table_number);
    PERFORM dbext_private.lend_rights(table_number, owner_name);
    RETURN table_number;
EXCEPTION WHEN lock_not_available THEN
    PERFORM dbext_private.refuse_in_use(relation);
END $$;
COMMENT ON FUNCTION dbext_private.begin_rebase(oid, name, timestamptz) IS
    'A T marker, after which every entry is absent that is not recorded again at once, by the owner, who may do so until finish_rebase.';

CREATE FUNCTION dbext_private.finish_rebase(table_id integer, owner_name name) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
    PERFORM dbext_private.finish_tracking(table_id, owner_name);
    UPDATE dbext_private.tracked_table AS t SET schema_facts = NULL WHERE t.table_id = finish_rebase.table_id;
    PERFORM dbext_private.note_lost_columns(table_id);
    PERFORM dbext_private.follow_schema(table_id);
    PERFORM dbext_private.note_schema_event(table_id, 'rebased', 'the table was recorded anew by dp_rebase; what had gone unseen counts in this tick');
    UPDATE dbext_private.schema_event AS e
    SET through_tick = greatest(e.from_tick, dbext_private.table_tick_of(e.table_id, dbext_private.effective_now()))
    WHERE e.table_id = finish_rebase.table_id AND e.kind = 'rebased' AND e.through_tick IS NULL;
END $$;
COMMENT ON FUNCTION dbext_private.finish_rebase(integer, name) IS 'Takes the rights back, looks what is still amiss, and marks the tick of the re-base.';

CREATE FUNCTION dp_rebase(tbl regclass) RETURNS text LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET row_security = off SET client_min_messages = warning SET quote_all_identifiers = off AS $$
DECLARE
    table_number integer;
    moment timestamptz;
    command text;
BEGIN
    PERFORM dbext_private.refuse_tracking_here(tbl, current_user);
    PERFORM dbext_private.lock_in_turns(tbl, dbext_private.drops_triggers(tbl, NULL));
    -- One moment for marker and rows: no tick may end between them.
    moment := dbext_private.effective_now();
    table_number := dbext_private.begin_rebase(tbl, current_user, moment);
    EXECUTE dbext_private.baseline_statement(table_number) USING moment;
    FOR command IN SELECT c FROM dbext_private.trigger_commands(table_number, NULL) AS c LOOP
        EXECUTE command;
    END LOOP;
    PERFORM dbext_private.finish_rebase(table_number, current_user);
    RETURN format('%s was recorded anew: every entry that differs from what was settled mutates once, in the open tick.', tbl);
END $$;
COMMENT ON FUNCTION dp_rebase(regclass) IS
    'Records a tracked table anew after something changed it unseen: settled to current image is one ordinary mutation per changed entry. Makes missing triggers, ends marks.';

CREATE FUNCTION dp_mark(tbl regclass, description text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known dbext_private.tracked_table;
BEGIN
    PERFORM dbext_private.require_admin();
    SELECT t.* INTO known FROM dbext_private.tracked_table AS t WHERE t.relation = tbl::oid AND t.tracked;
    IF NOT FOUND THEN
        PERFORM dbext_private.refuse(format('table %s is not tracked', tbl), NULL, 'DP002');
    ELSIF coalesce(description, '') = '' OR length(description) > 1000 THEN
        PERFORM dbext_private.refuse('a mark says what happened, in at most 1000 characters', 'Readers of the releases see it: no values of rows.', 'DP001');
    END IF;
    PERFORM dbext_private.note_schema_event(known.table_id, 'reported', description);
    RETURN format('Releases of %I.%I are marked from the open tick on, until dp_rebase.', known.schema_name, known.table_name);
END $$;
COMMENT ON FUNCTION dp_mark(regclass, text) IS
    'Marks the releases of a table publicly: an administrator''s decision, for what row counts tell would leak if marks followed them by themselves.';

CREATE FUNCTION dbext_private.look_at(table_id integer, OUT files bigint, OUT written bigint)
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT hashtextextended(string_agg(pg_relation_filenode(p.relation)::text, ' ' ORDER BY p.relation), 0),
        sum(pg_stat_get_tuples_inserted(p.relation) + pg_stat_get_tuples_updated(p.relation) + pg_stat_get_tuples_deleted(p.relation))
    INTO files, written
    FROM dbext_private.tracked_table AS t CROSS JOIN LATERAL dbext_private.partition_tree(t.relation) AS p WHERE t.table_id = look_at.table_id;
END $$;
COMMENT ON FUNCTION dbext_private.look_at(integer) IS 'What PostgreSQL itself tells of a table''s files and of rows written to it, rolled back ones included.';

CREATE FUNCTION dbext_private.recount_columns(table_id integer, OUT keys text, OUT definition text, OUT same text, OUT differs text)
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(format('key_%s', c.position), ', ' ORDER BY c.position) FILTER (WHERE c.is_key),
        string_agg(format(', %s_%s %s', CASE WHEN c.is_key THEN 'key' ELSE 'new' END, c.position, format_type(a.atttypid, -1)
            || CASE WHEN a.attcollation <> 0 THEN format(' COLLATE %I.%I', n.nspname, k.collname) ELSE '' END), '' ORDER BY c.position),
        string_agg(format('r.key_%s %s c.key_%1$s', c.position, dbext_private.key_operator(a.atttypid)), ' AND ') FILTER (WHERE c.is_key),
        coalesce(string_agg(dbext_private.differs(a.atttypid, format('r.new_%s', c.position), format('c.new_%s', c.position), false), ' OR ')
            FILTER (WHERE NOT c.is_key AND NOT c.gone), 'false')
    FROM dbext_private.tracked_column AS c JOIN pg_attribute AS a ON a.attrelid = to_regclass(format('dbext_private.log_%s', c.table_id))
        AND a.attname = format(CASE WHEN c.is_key THEN 'key_%s' ELSE 'new_%s' END, c.position)
    LEFT JOIN pg_collation AS k ON k.oid = a.attcollation LEFT JOIN pg_namespace AS n ON n.oid = k.collnamespace
    WHERE c.table_id = recount_columns.table_id
$$;
COMMENT ON FUNCTION dbext_private.recount_columns(integer) IS 'Column lists of a recount: r is a record of the log, c a row that was copied.';

CREATE FUNCTION dbext_private.begin_recount(relation oid, owner_name name) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET default_tablespace = ''
SET lock_timeout = '2s' AS $$
DECLARE
    table_number integer;
BEGIN
    table_number := dbext_private.require_tracked(relation, owner_name);
    EXECUTE format('CREATE UNLOGGED TABLE dbext_private.recount_%s (op "char", mutated_at timestamptz, xid xid8%s)', table_number,
        (dbext_private.recount_columns(table_number)).definition);
    IF EXISTS (SELECT FROM pg_attribute AS c JOIN pg_attribute AS l ON l.attname = c.attname AND l.atttypid <> c.atttypid AND c.attnum > 0
            WHERE c.attrelid = to_regclass(format('dbext_private.recount_%s', table_number)) AND l.attrelid = to_regclass(format('dbext_private.log_%s', table_number))) THEN
        PERFORM dbext_private.refuse(format('a type of table %s was renamed or replaced meanwhile', relation::regclass), 'Try again.', 'DP031');
    END IF;
    EXECUTE format('GRANT INSERT ON dbext_private.recount_%s TO %I', table_number, owner_name);
    RETURN replace(dbext_private.baseline_statement(table_number), format('INTO dbext_private.log_%s ', table_number),
        format('INTO dbext_private.recount_%s ', table_number));
EXCEPTION WHEN lock_not_available THEN
    PERFORM dbext_private.refuse_in_use(relation);
END $$;
COMMENT ON FUNCTION dbext_private.begin_recount(oid, name) IS 'A table to copy the rows into, and the statement by which their owner does so.';

CREATE FUNCTION dbext_private.finish_recount(relation oid, owner_name name, OUT missing bigint, OUT unexpected bigint, OUT different bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS $$
DECLARE
    table_number integer := dbext_private.require_tracked(relation, owner_name);
    lists record := dbext_private.recount_columns(table_number);
BEGIN
    -- The last record of each entry. Statements that nest are recorded inside out, so any record of the same transaction will do.
    EXECUTE format('WITH record AS MATERIALIZED (SELECT l.* FROM dbext_private.log_%1$s AS l '
        'WHERE l.op <> ''T'' AND l.number > coalesce((SELECT max(t.number) FROM dbext_private.log_%1$s AS t WHERE t.op = ''T''), 0)), '
        'latest AS (SELECT DISTINCT ON (%2$s) r.* FROM record AS r ORDER BY %2$s, r.number DESC), '
        'copied AS (SELECT true AS present, c.* FROM dbext_private.recount_%1$s AS c), '
        'compared AS (SELECT r.op, r.number, c.present, r.op IS NOT NULL AND c.present AND (%4$s) AS differs, r.xid, %5$s '
        'FROM latest AS r FULL JOIN copied AS c ON %3$s), '
        'wrong AS (SELECT c.* FROM compared AS c WHERE c.differs OR (coalesce(c.op, ''D'') = ''D'') = coalesce(c.present, false)) '
        'SELECT count(*) FILTER (WHERE w.present IS NULL), count(*) FILTER (WHERE w.present AND coalesce(w.op, ''D'') = ''D''), '
        'count(*) FILTER (WHERE w.present AND w.op <> ''D'') FROM wrong AS w WHERE NOT EXISTS (SELECT FROM record AS r '
        'LEFT JOIN copied AS c ON %3$s WHERE r.xid = w.xid AND r.number <> w.number AND %6$s '
        'AND CASE WHEN w.present THEN r.op <> ''D'' AND NOT (%4$s) ELSE r.op = ''D'' END)',
        table_number, lists.keys, lists.same, lists.differs, regexp_replace(lists.keys, '(key_\d+)', 'coalesce(r.\1, c.\1) AS \1', 'g'),
        regexp_replace(lists.same, ' c\.', ' w.', 'g')) INTO missing, unexpected, different;
    EXECUTE format('DROP TABLE dbext_private.recount_%s', table_number);
END $$;
COMMENT ON FUNCTION dbext_private.finish_recount(oid, name) IS 'Compares the copied rows with the last record of every entry, and drops the copy.';

CREATE FUNCTION dp_recount(tbl regclass, OUT missing bigint, OUT unexpected bigint, OUT different bigint) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET row_security = off SET client_min_messages = warning SET quote_all_identifiers = off AS $$
BEGIN
    PERFORM dbext_private.refuse_tracking_here(tbl, current_user);
    PERFORM dbext_private.lock_in_turns(tbl, false);
    EXECUTE dbext_private.begin_recount(tbl, current_user) USING dbext_private.effective_now();
    SELECT f.missing, f.unexpected, f.different INTO dp_recount.missing, dp_recount.unexpected, dp_recount.different
    FROM dbext_private.finish_recount(tbl, current_user) AS f;
END $$;
COMMENT ON FUNCTION dp_recount(regclass) IS
    'Compares a tracked table with its changelog, exactly: entries recorded but missing from the table, in the table but not recorded, and with other values. For its owner alone; charges and publishes nothing.';

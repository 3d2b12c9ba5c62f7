-- Tracking. dp_track and dp_untrack run with the rights of the table's owner: a definer could neither lock someone else's table, nor
-- read it under row-level security, nor make its triggers. What is private is done by definer helpers that take no SQL, only names.

CREATE FUNCTION dbext_private.require_table_owner(relation oid, role_name name) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    IF NOT dbext_private.is_admin(role_name)
        OR NOT (SELECT pg_has_role(role_name, c.relowner, 'USAGE') FROM pg_class AS c WHERE c.oid = relation) THEN
        PERFORM dbext_private.refuse(format('only the owner of %s who is a member of dbext_admin may do this', relation::regclass), NULL, 'DP005');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.require_table_owner(oid, name) IS 'Refuses roles that do not both own the table and belong to dbext_admin.';

CREATE FUNCTION dbext_private.require_lock(relation oid) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database()
        WHERE l.locktype = 'relation' AND l.relation = require_lock.relation AND l.pid = pg_backend_pid() AND l.granted
            AND l.mode IN ('ShareRowExclusiveLock', 'AccessExclusiveLock')) THEN
        PERFORM dbext_private.refuse(format('table %s was renamed or replaced meanwhile', relation::regclass), 'Try again.', 'DP031');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.require_lock(oid) IS
    'Refuses unless this transaction has locked this very relation: from then on nobody else can rename, replace or write it.';

CREATE FUNCTION dbext_private.require_own_code(relation oid, owner_name name) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF dbext_private.foreign_code(relation, owner_name) THEN
        PERFORM dbext_private.refuse(format('reading table %s would call functions of somebody else, as its indexes or statistics have them', relation::regclass),
            'Let the owner of those functions run this, or give them to a superuser: ALTER FUNCTION ... OWNER TO.', 'DP005');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.require_own_code(oid, name) IS
    'Refuses tables that run somebody''s code when they are read. Asked before the lock, so as not to wait for nothing, and under it, when no index can be added any more.';

CREATE FUNCTION dbext_private.run_time_columns(table_id integer, prefixes text[], keys boolean, only_position integer, settled boolean DEFAULT false) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(string_agg(format(', %s_%s %s%s%s', prefix, c.position, c.type_name,
        CASE WHEN settled AND NOT c.is_unit AND t.rows_per_unit IS NOT NULL THEN '[]' ELSE '' END, collation_clause.sql), '' ORDER BY place, c.position), '')
    FROM dbext_private.tracked_table AS t JOIN dbext_private.tracked_column AS c USING (table_id)
    JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum = c.attribute_number
    LEFT JOIN pg_collation AS k ON k.oid = a.attcollation LEFT JOIN pg_namespace AS n ON n.oid = k.collnamespace
    CROSS JOIN LATERAL (SELECT CASE WHEN k.oid IS NULL THEN '' ELSE format(' COLLATE %I.%I', n.nspname, k.collname) END AS sql) AS collation_clause
    CROSS JOIN unnest(prefixes) WITH ORDINALITY AS p (prefix, place)
    WHERE t.table_id = run_time_columns.table_id AND CASE WHEN settled THEN c.is_unit ELSE c.is_key END = keys
        AND c.position = coalesce(only_position, c.position)
$$;
COMMENT ON FUNCTION dbext_private.run_time_columns(integer, text[], boolean, integer, boolean) IS
    'Column definitions of the run-time tables, all or those of one position: positional names (long or odd names are safe), types without modifier, the columns'' collations. settled: of images of entries, which hold arrays where an entry has several rows.';

CREATE FUNCTION dbext_private.create_run_time_tables(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    keys text := dbext_private.run_time_columns(table_id, '{key}', true, NULL);
    changes text := dbext_private.run_time_columns(table_id, '{old,new}', false, NULL);
    units text := dbext_private.run_time_columns(table_id, '{key}', true, NULL, true);
    images text := dbext_private.run_time_columns(table_id, '{image}', false, NULL, true);
    settled text := dbext_private.run_time_columns(table_id, '{old,new}', false, NULL, true);
    key_names text;
BEGIN
    SELECT string_agg(format('key_%s', c.position), ', ' ORDER BY c.position) INTO key_names
    FROM dbext_private.tracked_column AS c WHERE c.table_id = create_run_time_tables.table_id AND c.is_unit;
    EXECUTE format('CREATE TABLE dbext_private.log_%s (number bigint GENERATED ALWAYS AS IDENTITY, op "char" NOT NULL%s%s, '
        'mutated_at timestamptz NOT NULL, xid xid8 NOT NULL)', table_id, keys, changes);
    -- One block-range index finds what is new, for a third of what a btree would cost the writer; each seal summarises what has come.
    EXECUTE format('CREATE INDEX log_%s_new ON dbext_private.log_%1$s USING brin (xid dbext_private.xid8_minmax_ops, mutated_at) '
        'WITH (pages_per_range = 32)', table_id);
    EXECUTE format('CREATE TABLE dbext_private.deferred_%s (number bigint PRIMARY KEY, op "char" NOT NULL%s%s, '
        'mutated_at timestamptz NOT NULL, taken_by bigint)', table_id, keys, changes);
    EXECUTE format('CREATE TABLE dbext_private.admission_%s (slots integer NOT NULL, type_no integer, first_tick bigint NOT NULL, '
        'frozen boolean NOT NULL, present boolean NOT NULL%s%s, PRIMARY KEY (%s)) WITH (fillfactor = 80)', table_id, units, images, key_names);
    EXECUTE format('CREATE TABLE dbext_private.change_%s (tick bigint NOT NULL, baseline boolean NOT NULL, old_present boolean NOT NULL, '
        'new_present boolean NOT NULL%s%s)', table_id, units, settled);
    EXECUTE format('CREATE INDEX change_%s_tick ON dbext_private.change_%1$s USING brin (tick) WITH (pages_per_range = 32)', table_id);
    -- A publication FOR ALL TABLES would refuse to have anything deleted from tables without a key.
    EXECUTE format('ALTER TABLE dbext_private.log_%s REPLICA IDENTITY FULL; ALTER TABLE dbext_private.change_%1$s REPLICA IDENTITY FULL', table_id);
    EXECUTE format('COMMENT ON TABLE dbext_private.log_%s IS %L', table_id, 'Every mutation of a tracked table, in order of number; op B is the baseline, T a truncation.');
    EXECUTE format('COMMENT ON TABLE dbext_private.deferred_%s IS %L', table_id, 'Log rows that wait for an earlier mutation of their entry (clocks step back); taken_by is the seal that took them.');
    EXECUTE format('COMMENT ON TABLE dbext_private.admission_%s IS %L', table_id, 'Every entry ever seen: its type, slots used, first tick and settled image.');
    EXECUTE format('COMMENT ON TABLE dbext_private.change_%s IS %L', table_id, 'Changes of settled images, one row per entry and sealed tick: what every statistic is computed from.');
    PERFORM dbext_private.create_row_table(table_id);
END $$;
COMMENT ON FUNCTION dbext_private.create_run_time_tables(integer) IS 'Makes log, deferred, admission and change tables of a newly tracked table, and one of its rows if a unit has several.';

CREATE FUNCTION dbext_private.store_columns(table_id integer, relation oid, unit smallint[], row_key smallint[], numbers smallint[]) RETURNS void
LANGUAGE sql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO dbext_private.tracked_column (table_id, position, column_name, attribute_number, type_name, is_unit, is_key)
    SELECT store_columns.table_id, row_number() OVER (ORDER BY a.attnum), a.attname, a.attnum,
        format_type(dbext_private.base_type(a.atttypid), -1), a.attnum = ANY (unit), a.attnum = ANY (unit || row_key)
    FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attnum = ANY (unit || row_key || numbers)
$$;
COMMENT ON FUNCTION dbext_private.store_columns(integer, oid, smallint[], smallint[], smallint[]) IS 'Numbers the tracked columns, in the order of the table.';

CREATE FUNCTION dbext_private.trackable_columns(relation oid, names text[]) RETURNS smallint[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN names IS NOT NULL THEN dbext_private.column_numbers(relation, names)
        ELSE (SELECT array_agg(a.attnum) FROM pg_attribute AS a
            WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v') END
$$;
COMMENT ON FUNCTION dbext_private.trackable_columns(oid, text[]) IS 'Attribute numbers of the columns named, or of all that are stored.';

CREATE FUNCTION dbext_private.begin_tracking(
    relation oid, tick interval, time_zone text, unit text[], columns text[], rows_per_unit integer, capture text, owner_name name,
    OUT table_number integer, OUT baseline text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET default_tablespace = '' SET default_table_access_method = heap
SET lock_timeout = '2s' AS $$
DECLARE
    unit_numbers smallint[];
    row_key smallint[];
    column_numbers smallint[];
    known dbext_private.tracked_table;
    anew boolean := true;
    unused boolean := false;
BEGIN
    PERFORM dbext_private.require_table_owner(relation, owner_name);
    PERFORM dbext_private.require_lock(relation);
    PERFORM dbext_private.hold_name(relation);
    PERFORM dbext_private.hold_types(relation);
    PERFORM dbext_private.require_own_code(relation, owner_name);
    PERFORM dbext_private.refuse_untrackable(relation);
    IF capture NOT IN ('statement', 'row') THEN
        PERFORM dbext_private.refuse('capture is statement or row', NULL, 'DP001');
    END IF;
    unit_numbers := dbext_private.unit_columns(relation, unit);
    row_key := dbext_private.row_key(relation, unit, unit_numbers, rows_per_unit);
    column_numbers := row_key || dbext_private.trackable_columns(relation, columns);
    PERFORM dbext_private.refuse_unusable_unit(relation, unit_numbers, row_key);
    PERFORM dbext_private.refuse_unreachable_types(relation, unit_numbers || column_numbers);
    PERFORM dbext_private.refuse_too_wide(relation, unit_numbers, column_numbers);
    PERFORM dbext_private.refuse_unfit_rows(relation, unit_numbers, column_numbers, rows_per_unit);
    PERFORM dbext_private.remember_cluster();
    -- The same table is the same OID, whatever it is called now. A new table of the name of one that was dropped takes its place.
    PERFORM dbext_private.follow_schema(t.table_id) FROM dbext_private.tracked_table AS t JOIN pg_class AS c ON c.oid IN (begin_tracking.relation, t.relation)
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = begin_tracking.relation AND (t.relation = c.oid OR t.relation <> 0 AND (t.schema_name, t.table_name) = (n.nspname, c.relname));
    SELECT t.* INTO known FROM dbext_private.tracked_table AS t CROSS JOIN pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = begin_tracking.relation AND (t.relation = c.oid OR t.relation = 0 AND (t.schema_name, t.table_name) = (n.nspname, c.relname))
    ORDER BY t.relation DESC, t.table_id DESC LIMIT 1;
    PERFORM dbext_private.widen_columns(known.table_id, relation);
    IF known.table_id IS NOT NULL AND NOT known.tracked THEN
        IF NOT dbext_private.same_arguments(known, relation, tick, time_zone, unit_numbers, row_key, CASE WHEN columns IS NOT NULL THEN column_numbers END,
            rows_per_unit) THEN
            unused := dbext_private.forget_unused(known.table_id);
        END IF;
    END IF;
    IF known.table_id IS NOT NULL AND NOT unused THEN
        table_number := known.table_id;
        anew := dbext_private.resume_tracking(known, relation, tick, time_zone, unit_numbers, row_key,
            CASE WHEN columns IS NOT NULL THEN column_numbers END, rows_per_unit, capture);
    ELSE
        table_number := dbext_private.start_tracking(known.table_id, relation, tick, time_zone, unit_numbers, row_key, column_numbers, rows_per_unit);
        -- Triggers of statements do not see what a MERGE moves to another partition.
        capture := coalesce(capture, (SELECT 'row' FROM pg_class AS c WHERE c.oid = begin_tracking.relation AND c.relkind = 'p'));
    END IF;
    -- Types were written by name: another of the name would have its casts called by whoever reads the table for us.
    IF dbext_private.unlike_recorded(table_number, relation) THEN
        PERFORM dbext_private.refuse(format('a type of table %s was renamed or replaced meanwhile', relation::regclass), 'Try again.', 'DP031');
    END IF;
    UPDATE dbext_private.tracked_table AS t SET capture = begin_tracking.capture WHERE t.table_id = table_number AND begin_tracking.capture IS NOT NULL;
    PERFORM dbext_private.choose_triggers(table_number);
    PERFORM dbext_private.lend_rights(table_number, owner_name);
    IF anew THEN
        baseline := dbext_private.baseline_statement(table_number);
    END IF;
EXCEPTION WHEN lock_not_available THEN
    PERFORM dbext_private.refuse_in_use(relation);
END $$;
COMMENT ON FUNCTION dbext_private.begin_tracking(oid, interval, text, text[], text[], integer, text, name) IS
    'Checks the table, prepares its catalog rows, run-time tables and capture functions, and lets its owner write the baseline until finish_tracking. Without a baseline the triggers alone change.';

CREATE FUNCTION dbext_private.choose_triggers(table_id integer) RETURNS void
LANGUAGE sql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
    UPDATE dbext_private.tracked_table AS t SET row_triggers = t.capture = 'row' OR dbext_private.fed_by_subscription(t.relation) WHERE t.table_id = choose_triggers.table_id;
    SELECT dbext_private.write_capture(table_id)
$$;
COMMENT ON FUNCTION dbext_private.choose_triggers(integer) IS 'Writes the capture functions: for statements, or for rows where the table is to be captured so or logical replication writes.';

CREATE FUNCTION dbext_private.lend_rights(table_id integer, owner_name name) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    event text;
BEGIN
    EXECUTE format('GRANT INSERT ON dbext_private.log_%s TO %I', table_id, owner_name);
    FOREACH event IN ARRAY dbext_private.capture_events(table_id) LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s() TO %I', dbext_private.capture_name(table_id, event), owner_name);
    END LOOP;
END $$;
COMMENT ON FUNCTION dbext_private.lend_rights(integer, name) IS 'Lets the table''s owner record rows and make triggers, until take_back_rights.';

CREATE FUNCTION dbext_private.start_tracking(
    forgotten integer, relation oid, tick interval, time_zone text, unit_numbers smallint[], row_key smallint[], column_numbers smallint[],
    rows_per_unit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parts record := dbext_private.tick_kind_and_size(tick);
    zone text := dbext_private.zone_name(time_zone);
    moment timestamptz := dbext_private.effective_now();
    tick_now bigint := dbext_private.tick_of(parts.kind, parts.size, zone, moment);
    table_number integer := forgotten;
BEGIN
    IF forgotten IS NULL THEN
        -- A copy of the schema alone has run-time tables of numbers that nobody has.
        PERFORM setval(s.name, s.number) FROM (SELECT pg_get_serial_sequence('dbext_private.tracked_table', 'table_id')::regclass AS name,
            max(substring(c.relname FROM '^log_(\d{1,9})$')::integer) AS number FROM pg_class AS c WHERE c.relnamespace = 'dbext_private'::regnamespace) AS s
        WHERE s.number > coalesce(pg_sequence_last_value(s.name), 0);
        INSERT INTO dbext_private.tracked_table (schema_name, table_name, relation, tick_kind, tick_size, time_zone, first_tick, tracked, tracked_at)
        SELECT n.nspname, c.relname, c.oid, parts.kind, parts.size, zone, tick_now, false, moment
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = relation
        RETURNING table_id INTO table_number;
    ELSE
        UPDATE dbext_private.tracked_table AS t
        SET (schema_name, table_name, relation, tick_kind, tick_size, time_zone, first_tick, tracked, tracked_at, sealed_unconstrained, forgotten_through, segment,
            schema_facts, capture) = (SELECT n.nspname, c.relname, c.oid, parts.kind, parts.size, zone, tick_now, false, moment, false, NULL::bigint, NULL::integer,
                NULL, 'statement'
                FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = start_tracking.relation)
        WHERE t.table_id = forgotten;
    END IF;
    UPDATE dbext_private.tracked_table AS t SET rows_per_unit = start_tracking.rows_per_unit WHERE t.table_id = table_number;
    PERFORM dbext_private.store_columns(table_number, relation, unit_numbers, row_key, column_numbers);
    PERFORM dbext_private.create_run_time_tables(table_number);
    -- Snapshot 1:1: sees nothing, so the first seal takes every row that is in the log by then, the baseline of this very transaction
    -- included: pg_current_snapshot() would not do, because it does not list its own transaction as in progress.
    INSERT INTO dbext_private.seal_head (table_id, tick, boundary, snapshot)
    VALUES (table_number, tick_now - 1, dbext_private.tick_end(parts.kind, parts.size, zone, tick_now - 1), '1:1:');
    RETURN table_number;
END $$;
COMMENT ON FUNCTION dbext_private.start_tracking(integer, oid, interval, text, smallint[], smallint[], smallint[], integer) IS
    'Catalog rows and run-time tables of a table tracked for the first time, or under the number of one that forget_unused has emptied.';

CREATE FUNCTION dbext_private.baseline_statement(table_id integer) RETURNS text
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
    -- TABLESAMPLE, of all rows, because nothing that could run someone's code has it: the schema may be renamed and a view put in its place.
    -- Once something was sealed the rows are ordinary inserts: who came while nothing was recorded did come.
    SELECT format('INSERT INTO dbext_private.log_%s (op, mutated_at, xid%s%s) SELECT %L, $1, pg_current_xact_id()%s%s '
        'FROM %s %I.%I AS n TABLESAMPLE pg_catalog.system (100) WHERE n.tableoid OPERATOR(pg_catalog.=) ANY (%L::pg_catalog.oid[])',
        t.table_id, c.keys, c.news, CASE WHEN h.seal_no = 0 THEN 'B' ELSE 'I' END, c.new_keys, c.new_values, p.only, t.schema_name, t.table_name, p.relations)
    FROM dbext_private.tracked_table AS t JOIN dbext_private.seal_head AS h USING (table_id)
    CROSS JOIN LATERAL dbext_private.capture_columns(t.table_id) AS c
    CROSS JOIN LATERAL (SELECT array_agg(p.relation) AS relations, CASE WHEN bool_and(p.kind = 'r') THEN 'ONLY' ELSE '' END AS only
        FROM dbext_private.partition_tree(t.relation) AS p) AS p
    WHERE t.table_id = baseline_statement.table_id
$$;
COMMENT ON FUNCTION dbext_private.baseline_statement(integer) IS 'The INSERT by which the table''s owner records the rows that exist; $1 is the time of tracking.';

CREATE FUNCTION dbext_private.take_back_rights(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT DISTINCT format('TABLE dbext_private.%I', c.relname) AS name, a.grantee FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
        WHERE c.oid IN (SELECT l.relation FROM dbext_private.log_relations(table_id) AS l) AND a.grantee <> c.relowner
        UNION
        SELECT format('FUNCTION %s', p.oid::regprocedure), a.grantee FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS a
        WHERE p.pronamespace = 'dbext_private'::regnamespace AND p.proname ~ ('^capture_[a-z]+_' || table_id || '$') AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', granted.name, CASE WHEN granted.grantee = 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END);
    END LOOP;
END $$;
COMMENT ON FUNCTION dbext_private.take_back_rights(integer) IS 'Takes back what begin_tracking granted, from whoever has it.';

CREATE FUNCTION dbext_private.finish_tracking(table_id integer, owner_name name) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
    known dbext_private.tracked_table;
BEGIN
    SELECT t.* INTO known FROM dbext_private.tracked_table AS t WHERE t.table_id = finish_tracking.table_id;
    PERFORM dbext_private.require_table_owner(known.relation, owner_name);
    PERFORM dbext_private.require_lock(known.relation);
    -- Renaming a schema waits for no lock.
    IF EXISTS (SELECT FROM dbext_private.triggers_missing(table_id, known.relation))
        OR NOT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.oid = known.relation AND (n.nspname, c.relname) = (known.schema_name, known.table_name)) THEN
        PERFORM dbext_private.refuse(format('table %s was renamed or replaced meanwhile', known.relation::regclass), 'Try again.', 'DP031');
    END IF;
    PERFORM dbext_private.take_back_rights(table_id);
    PERFORM dbext_private.drop_capture_functions(table_id, dbext_private.capture_events(table_id));
    PERFORM dbext_private.refuse_double_entries(table_id);
    PERFORM dbext_private.know_partitions(table_id);
    PERFORM dbext_private.follow_labels(table_id);
    UPDATE dbext_private.tracked_table AS t SET tracked = true WHERE t.table_id = finish_tracking.table_id;
    RETURN (SELECT format('Protected: %s. Every mutation is recorded from now on; a tick is %s in time zone %s.', dbext_private.protected_subject(t.table_id),
        dbext_private.public_span(t.tick_kind, t.tick_size), t.time_zone)
        FROM dbext_private.tracked_table AS t WHERE t.table_id = finish_tracking.table_id);
END $$;
COMMENT ON FUNCTION dbext_private.finish_tracking(integer, name) IS 'Takes the owner''s temporary rights away again and says what is protected.';

CREATE FUNCTION dp_track(
    tbl regclass, tick interval DEFAULT '1 day', time_zone text DEFAULT 'UTC', unit text[] DEFAULT NULL, columns text[] DEFAULT NULL,
    rows_per_unit integer DEFAULT NULL, capture text DEFAULT NULL) RETURNS text LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET row_security = off SET client_min_messages = warning SET quote_all_identifiers = off AS $$
DECLARE
    table_number integer;
    baseline text;
    moment timestamptz;
    command text;
BEGIN
    PERFORM dbext_private.refuse_tracking_here(tbl, current_user);
    -- Writers wait from here on, and a transaction that began earlier and writes later is captured by the triggers.
    -- The name is looked up once more here, and what has it by then gets the lock: begin_tracking refuses unless that is this table.
    PERFORM dbext_private.lock_in_turns(tbl, dbext_private.drops_triggers(tbl, capture));
    -- Not after the moment of the T marker by which a table is taken up again: no tick may end between that and the rows.
    moment := dbext_private.effective_now();
    SELECT b.table_number, b.baseline INTO table_number, baseline
    FROM dbext_private.begin_tracking(tbl, tick, time_zone, unit, columns, rows_per_unit, capture, current_user) AS b;
    IF baseline IS NOT NULL THEN
        EXECUTE baseline USING moment;
    END IF;
    FOR command IN SELECT c FROM dbext_private.trigger_commands(table_number, NULL) AS c LOOP
        EXECUTE command;
    END LOOP;
    RETURN dbext_private.finish_tracking(table_number, current_user);
END $$;
COMMENT ON FUNCTION dp_track(regclass, interval, text, text[], text[], integer, text) IS
    'Records every mutation of a table from now on. Run by its owner, a member of dbext_admin. unit: the NOT NULL unique key that identifies an entry (default: the primary key); columns: what to record (default: all); rows_per_unit: the unit is not unique, and so many rows of each count; capture: by triggers of statements (default) or of rows, which are faster for transactions of one row.';

CREATE FUNCTION dbext_private.refuse_tracking_here(relation oid, owner_name name) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.refuse_untrackable(relation);
    PERFORM dbext_private.require_table_owner(relation, owner_name);
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM dbext_private.refuse('a table is tracked in a READ COMMITTED transaction: the baseline must see every row committed before the lock');
    END IF;
    PERFORM dbext_private.require_own_code(relation, owner_name);
    IF (SELECT c.relforcerowsecurity AND NOT (r.rolsuper OR r.rolbypassrls) FROM pg_class AS c, pg_roles AS r
            WHERE c.oid = relation AND r.rolname = owner_name) THEN
        PERFORM dbext_private.refuse('row-level security is forced on this table''s owner, who therefore cannot read the baseline',
            'Let a role with BYPASSRLS run dp_track.');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.refuse_tracking_here(oid, name) IS 'Refusals that come before the table is locked.';

CREATE FUNCTION dbext_private.end_tracking(relation oid, owner_name name) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    known dbext_private.tracked_table;
BEGIN
    PERFORM dbext_private.require_table_owner(relation, owner_name);
    PERFORM dbext_private.require_lock(relation);
    UPDATE dbext_private.tracked_table AS t SET tracked = false WHERE t.relation = end_tracking.relation AND t.tracked RETURNING t.* INTO known;
    IF NOT FOUND THEN
        PERFORM dbext_private.refuse(format('table %s is not tracked', end_tracking.relation::regclass), NULL, 'DP002');
    END IF;
    DELETE FROM dbext_private.tracked_partition AS p WHERE p.table_id = known.table_id;
    PERFORM dbext_private.note_schema_event(known.table_id, 'untracked', 'tracking was ended by dp_untrack');
    RETURN format('%I.%I', known.schema_name, known.table_name);
EXCEPTION WHEN lock_not_available THEN
    PERFORM dbext_private.refuse_in_use(relation);
END $$;
COMMENT ON FUNCTION dbext_private.end_tracking(oid, name) IS 'Marks a table as no longer tracked.';

CREATE FUNCTION dbext_private.drop_capture_functions(table_id integer, kept text[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    dropped text;
BEGIN
    FOR dropped IN
        SELECT p.oid::regprocedure::text FROM pg_proc AS p WHERE p.pronamespace = 'dbext_private'::regnamespace
            AND p.proname ~ ('^capture_[a-z]+_' || table_id || '$') AND split_part(p.proname, '_', 2) <> ALL (kept)
    LOOP
        -- With its triggers on partitions that left the tree unseen, which record nothing any more.
        EXECUTE format('DROP FUNCTION %s CASCADE', dropped);
    END LOOP;
END $$;
COMMENT ON FUNCTION dbext_private.drop_capture_functions(integer, text[]) IS 'Drops the capture functions of a table but for those of the events kept.';

CREATE FUNCTION dbext_private.drop_capture(relation oid, owner_name name) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.require_table_owner(relation, owner_name);
    PERFORM dbext_private.drop_capture_functions(t.table_id, '{}') FROM dbext_private.tracked_table AS t WHERE t.relation = drop_capture.relation AND NOT t.tracked;
END $$;
COMMENT ON FUNCTION dbext_private.drop_capture(oid, name) IS 'Drops the capture functions of a table whose triggers are gone.';

CREATE FUNCTION dp_untrack(tbl regclass) RETURNS text LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET client_min_messages = warning SET quote_all_identifiers = off AS $$
DECLARE
    subject text;
    command text;
BEGIN
    PERFORM dbext_private.lock_in_turns(tbl, true);
    subject := dbext_private.end_tracking(tbl, current_user);
    FOR command IN SELECT c FROM dbext_private.untrigger_commands(tbl) AS c LOOP
        EXECUTE command;
    END LOOP;
    PERFORM dbext_private.drop_capture(tbl, current_user);
    RETURN format('%s is no longer tracked. Its releases are marked from the open tick on; dp_track takes it up again.', subject);
END $$;
COMMENT ON FUNCTION dp_untrack(regclass) IS 'Stops recording. Changelog, admission and ledger stay, so that tracking again resumes them.';

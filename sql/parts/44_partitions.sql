-- Partitioned tables. A statement fires the statement triggers of the table that it names, and of no other: so every table of the tree has
-- its own, and a statement is recorded once, wherever it is addressed. Rows that come or go with a whole partition are recorded when DDL
-- attaches or detaches it, under the lock that DDL holds anyway. Rows of a dropped partition are gone before anybody can be asked: a mark.

CREATE FUNCTION dbext_private.captured_relations(table_id integer, root oid) RETURNS TABLE (relation oid, event text)
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- TRUNCATE names every partition that it empties, and row triggers sit where rows are.
    RETURN QUERY SELECT t.relation, e FROM dbext_private.partition_tree(root) AS t
    JOIN unnest(dbext_private.capture_events(captured_relations.table_id)) AS e ON t.kind = 'r' OR t.kind = 'p' AND e <> 'truncate' AND e NOT LIKE 'row%';
END $$;
COMMENT ON FUNCTION dbext_private.captured_relations(integer, oid) IS 'The triggers that make capture whole: one per relation of the tree and event.';

CREATE FUNCTION dbext_private.triggers_missing(table_id integer, root oid) RETURNS TABLE (relation oid, event text)
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY WITH capture (event, function_id) AS MATERIALIZED (
        SELECT e, to_regprocedure(dbext_private.capture_name(triggers_missing.table_id, e) || '()')::oid
        FROM unnest(dbext_private.capture_events(triggers_missing.table_id)) AS e
    )
    SELECT r.relation, r.event FROM dbext_private.captured_relations(triggers_missing.table_id, root) AS r JOIN capture AS c ON c.event = r.event
    WHERE NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = r.relation AND t.tgfoid = c.function_id AND t.tgenabled = 'A');
END $$;
COMMENT ON FUNCTION dbext_private.triggers_missing(integer, oid) IS 'Capture triggers that are not there, disabled, or silent in replica sessions.';

CREATE FUNCTION dbext_private.drops_triggers(relation oid, capture text) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    by_row boolean := dbext_private.fed_by_subscription(relation)
        OR 'row' = coalesce(drops_triggers.capture, (SELECT max(t.capture) FROM dbext_private.tracked_table AS t WHERE t.relation = drops_triggers.relation));
BEGIN
    RETURN EXISTS (
        SELECT FROM dbext_private.partition_tree(drops_triggers.relation) AS p JOIN pg_trigger AS g ON g.tgrelid = p.relation AND g.tgname ~ '^00_dbext_'
        WHERE NOT CASE WHEN g.tgname ~ '_row' THEN coalesce(by_row, false) AND p.kind = 'r' WHEN g.tgname ~ '_truncate$' THEN p.kind = 'r' ELSE by_row IS NOT TRUE END);
END $$;
COMMENT ON FUNCTION dbext_private.drops_triggers(oid, text) IS
    'Whether triggers are in the way of capture of this kind (NULL: of the kind that there is): to drop one takes a lock that readers wait for.';

CREATE FUNCTION dbext_private.lock_statement(relation oid, drops boolean) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    -- Whoever drops triggers takes at once the lock that he needs in the end: to wait for it with writers waiting behind the lesser one would be
    -- a deadlock with any of them that has read the table before, and PostgreSQL may end that one.
    SELECT format('LOCK TABLE %s %s IN %s MODE', CASE WHEN c.relkind = 'p' THEN '' ELSE 'ONLY' END, c.oid::regclass,
        CASE WHEN drops THEN 'ACCESS EXCLUSIVE' ELSE 'SHARE ROW EXCLUSIVE' END)
    FROM pg_class AS c WHERE c.oid = lock_statement.relation
$$;
COMMENT ON FUNCTION dbext_private.lock_statement(oid, boolean) IS
    'The lock under which a table is tracked: writers wait, partitions neither come nor go; readers wait, too, where triggers are dropped.';

CREATE FUNCTION dbext_private.only_vacuumed(relation oid, drops boolean) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(bool_and(l.mode = 'ShareUpdateExclusiveLock'), false) FROM pg_locks AS l
    JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database()
    WHERE l.locktype = 'relation' AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid() AND (drops OR l.mode NOT IN ('AccessShareLock', 'RowShareLock'))
        AND l.relation IN (SELECT t.relation FROM dbext_private.partition_tree(only_vacuumed.relation) AS t)
$$;
COMMENT ON FUNCTION dbext_private.only_vacuumed(oid, boolean) IS 'Whether nobody is in the way of the lock of lock_statement but VACUUM, or what locks as it does.';

CREATE FUNCTION dbext_private.lock_in_turns(relation oid, drops boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    timeout text := current_setting('lock_timeout');
    deadlock interval := current_setting('deadlock_timeout');
    began timestamptz := clock_timestamp();
    patient timestamptz := began;
    turn interval;
BEGIN
    -- Whoever waits for a lock has all that come later wait behind him, for as long as one transaction before him lasts; and whoever waits for a
    -- partition with the table locked is in a deadlock with those who have written to that partition and go on to the table. So nothing is waited
    -- for until others may be ended, and what was locked by then is let go in between. But autovacuum gives way to those alone who wait for longer.
    LOOP
        turn := least(deadlock / 3, '300 ms');
        IF clock_timestamp() >= patient AND dbext_private.only_vacuumed(relation, drops) THEN
            turn := deadlock + interval '500 ms';
            patient := clock_timestamp() + interval '10 s';
        END IF;
        PERFORM set_config('lock_timeout', ceil(extract(epoch FROM turn) * 1000)::text, true);
        BEGIN
            EXECUTE dbext_private.lock_statement(relation, drops);
            EXIT;
        EXCEPTION WHEN lock_not_available THEN
            IF clock_timestamp() > began + nullif(timeout, '0')::interval THEN
                RAISE;
            END IF;
        END;
        PERFORM pg_sleep(0.1);
    END LOOP;
    PERFORM set_config('lock_timeout', timeout, true);
END $$;
COMMENT ON FUNCTION dbext_private.lock_in_turns(oid, boolean) IS
    'Takes the lock of lock_statement, for as long as lock_timeout of the session allows, while others take their turns.';

CREATE FUNCTION dbext_private.trigger_commands(table_id integer, only_relation oid) RETURNS SETOF text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
    -- Digits sort first: capture runs before the table's own statement triggers, whose changes come after.
    RETURN QUERY SELECT c.command FROM dbext_private.tracked_table AS t
    CROSS JOIN LATERAL dbext_private.partition_tree(t.relation) AS p
    CROSS JOIN (VALUES ('insert', 'AFTER INSERT', 'REFERENCING NEW TABLE AS dbext_new', 'STATEMENT'),
        ('delete', 'AFTER DELETE', 'REFERENCING OLD TABLE AS dbext_old', 'STATEMENT'),
        ('update', 'AFTER UPDATE', 'REFERENCING OLD TABLE AS dbext_old NEW TABLE AS dbext_new', 'STATEMENT'),
        ('rowinsert', 'AFTER INSERT', '', 'ROW'), ('rowdelete', 'AFTER DELETE', '', 'ROW'), ('rowupdate', 'AFTER UPDATE', '', 'ROW'),
        ('truncate', CASE WHEN (SELECT k.relkind FROM pg_class AS k JOIN dbext_private.tracked_table AS o ON k.oid = o.relation
            WHERE o.table_id = trigger_commands.table_id) = 'p' THEN 'BEFORE TRUNCATE' ELSE 'AFTER TRUNCATE' END, '', 'STATEMENT')) AS e (name, moment, tables, each)
    LEFT JOIN dbext_private.captured_relations(trigger_commands.table_id, t.relation) AS r ON (r.relation, r.event) = (p.relation, e.name)
    CROSS JOIN LATERAL (VALUES
        (1, CASE WHEN r.event IS NULL AND EXISTS (SELECT FROM pg_trigger AS g WHERE g.tgrelid = p.relation AND g.tgname = '00_dbext_' || e.name)
            THEN format('DROP TRIGGER "00_dbext_%s" ON %s', e.name, p.relation::regclass) END),
        (2, CASE WHEN r.event IS NOT NULL THEN format('CREATE OR REPLACE TRIGGER "00_dbext_%s" %s ON %s %s FOR EACH %s EXECUTE FUNCTION %s()',
            e.name, e.moment, p.relation::regclass, e.tables, e.each, dbext_private.capture_name(t.table_id, e.name)) END),
        (3, CASE WHEN r.event IS NOT NULL THEN format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER "00_dbext_%s"', p.relation::regclass, e.name) END)
    ) AS c (step, command)
    WHERE t.table_id = trigger_commands.table_id AND p.relation = coalesce(only_relation, p.relation) AND p.kind IN ('r', 'p') AND c.command IS NOT NULL
    ORDER BY p.relation, e.name, c.step;
END $$;
COMMENT ON FUNCTION dbext_private.trigger_commands(integer, oid) IS 'The commands by which the owner makes the capture triggers of a table and its partitions, or of one of them.';

CREATE FUNCTION dbext_private.untrigger_commands(root oid) RETURNS SETOF text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
    SELECT format('DROP TRIGGER %I ON %s', g.tgname, g.tgrelid::regclass)
    FROM dbext_private.partition_tree(root) AS t JOIN pg_trigger AS g ON g.tgrelid = t.relation JOIN pg_proc AS p ON p.oid = g.tgfoid
    WHERE p.pronamespace = 'dbext_private'::regnamespace AND p.proname ~ '^capture_[a-z]+_[0-9]+$'
$$;
COMMENT ON FUNCTION dbext_private.untrigger_commands(oid) IS 'The commands that drop every capture trigger of a table and its partitions.';

CREATE FUNCTION dbext_private.know_partitions(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM dbext_private.tracked_partition AS p WHERE p.table_id = know_partitions.table_id
        AND (NOT p.detached OR p.relation NOT IN (SELECT g.tgrelid FROM pg_trigger AS g)
            OR p.relation IN (SELECT o.relation FROM dbext_private.tracked_table AS t CROSS JOIN LATERAL dbext_private.partition_tree(t.relation) AS o
                WHERE t.table_id = p.table_id));
    INSERT INTO dbext_private.tracked_partition (table_id, relation, schema_name, table_name)
    SELECT t.table_id, c.oid, n.nspname, c.relname FROM dbext_private.tracked_table AS t CROSS JOIN LATERAL dbext_private.partition_tree(t.relation) AS p
    JOIN pg_class AS c ON c.oid = p.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE t.table_id = know_partitions.table_id AND p.relation <> t.relation;
END $$;
COMMENT ON FUNCTION dbext_private.know_partitions(integer) IS 'Stores which partitions there are.';

CREATE FUNCTION dbext_private.refuse_double_entries(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    keys text;
    doubled boolean;
BEGIN
    -- Only a unit without the partition columns can be in two rows, of two partitions: no index of PostgreSQL spans partitions.
    IF NOT EXISTS (SELECT FROM dbext_private.tracked_table AS t JOIN pg_class AS c ON c.oid = t.relation AND c.relkind = 'p'
            WHERE t.table_id = refuse_double_entries.table_id) THEN
        RETURN;
    END IF;
    SELECT string_agg(format('key_%s', c.position), ', ' ORDER BY c.position) INTO keys FROM dbext_private.tracked_column AS c
    WHERE c.table_id = refuse_double_entries.table_id AND c.is_key;
    EXECUTE format('SELECT EXISTS (SELECT FROM dbext_private.log_%1$s AS l WHERE l.xid = pg_current_xact_id() AND l.op IN (''B'', ''I'') '
        'AND l.number > coalesce((SELECT max(t.number) FROM dbext_private.log_%1$s AS t WHERE t.op = ''T''), 0) GROUP BY %2$s HAVING count(*) > 1)',
        table_id, keys) INTO doubled;
    IF doubled THEN
        PERFORM dbext_private.refuse('two rows of different partitions have the same privacy unit',
            'Name the whole unique key as unit, partition columns included, or remove the double rows.');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.refuse_double_entries(integer) IS 'Refuses to track a partitioned table whose unit is in two rows.';

CREATE FUNCTION dbext_private.locked_by_us(relation oid) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') AND EXISTS (
        SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database()
        WHERE l.locktype = 'relation' AND l.relation = locked_by_us.relation AND l.pid = pg_backend_pid() AND l.mode = 'AccessExclusiveLock' AND l.granted)
$$;
COMMENT ON FUNCTION dbext_private.locked_by_us(oid) IS 'Whether what this transaction reads of a relation now is all of it, and stays so until it commits.';

CREATE FUNCTION dbext_private.hold_name(relation oid) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Renaming a schema waits for no lock on what is in it, but for this one; it lasts as long as the transaction, and hinders nothing else.
    PERFORM FROM pg_namespace AS n WHERE n.oid = (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = relation) FOR KEY SHARE;
END $$;
COMMENT ON FUNCTION dbext_private.hold_name(oid) IS
    'Keeps the schema of a relation that is locked from being renamed: statements name it, and must not be led to another relation whose indexes call functions.';

CREATE FUNCTION dbext_private.unlike_recorded(table_id integer, relation oid) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM dbext_private.tracked_column AS k JOIN dbext_private.recorded_columns(unlike_recorded.table_id) AS r ON r.number = k.position
        LEFT JOIN pg_attribute AS a ON a.attrelid = unlike_recorded.relation AND a.attname = k.column_name AND a.attnum > 0 AND NOT a.attisdropped
        WHERE k.table_id = unlike_recorded.table_id AND NOT k.gone AND dbext_private.base_type(a.atttypid) IS DISTINCT FROM r.type_id);
END $$;
COMMENT ON FUNCTION dbext_private.unlike_recorded(integer, oid) IS
    'Whether columns of a partition are of other types than the log''s: copying them would call casts, which whoever owns a type may write.';

CREATE FUNCTION dbext_private.log_partition(table_id integer, relation oid, op "char", moment timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET row_security = off SET constraint_exclusion = off AS $$
DECLARE
    c dbext_private.column_lists := dbext_private.capture_columns(table_id);
    leaves boolean := op = 'D';
    statement text;
BEGIN
    IF NOT dbext_private.locked_by_us(relation) THEN
        PERFORM dbext_private.refuse(format('the rows of partition %s of a tracked table can be recorded in a READ COMMITTED transaction only', relation::regclass),
            'Use READ COMMITTED, or DELETE the rows.', 'DP031');
    END IF;
    PERFORM dbext_private.hold_name(relation);
    IF dbext_private.foreign_code(relation, 'dbext_owner') OR dbext_private.unlike_recorded(table_id, relation) THEN
        PERFORM dbext_private.note_schema_event(table_id, 'partition', format('partition %s was attached, detached or truncated with its rows unseen: it has '
            'columns of other types, or indexes or statistics over functions of others than superusers, which would run as superuser', relation::regclass));
        RETURN;
    END IF;
    -- This runs as superuser, because nobody else may read every partition. TABLESAMPLE (of all rows): nothing that could run code has it.
    SELECT format('INSERT INTO dbext_private.log_%s (op, mutated_at, xid%s) SELECT $1, $2, pg_current_xact_id()%s FROM ONLY %I.%I AS %s '
        'TABLESAMPLE pg_catalog.system (100) WHERE %6$s.tableoid OPERATOR(pg_catalog.=) $3', log_partition.table_id,
        c.keys || CASE WHEN leaves THEN c.olds ELSE c.news END, CASE WHEN leaves THEN c.old_keys || c.old_values ELSE c.new_keys || c.new_values END,
        n.nspname, k.relname, CASE WHEN leaves THEN 'o' ELSE 'n' END)
    INTO statement FROM pg_class AS k JOIN pg_namespace AS n ON n.oid = k.relnamespace WHERE k.oid = log_partition.relation AND k.relkind = 'r';
    IF FOUND THEN
        EXECUTE statement USING op, moment, relation;
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.log_partition(integer, oid, "char", timestamptz) IS 'Records every row of a partition as inserted (I) or deleted (D).';

CREATE FUNCTION dbext_private.adopt_partition(table_id integer, relation oid) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    command text;
BEGIN
    -- As superuser: whoever may create a partition need not be an administrator of dbext, and must not be stopped by it.
    PERFORM dbext_private.hold_name(relation);
    FOR command IN SELECT c FROM dbext_private.trigger_commands(table_id, relation) AS c LOOP
        EXECUTE command;
    END LOOP;
    PERFORM dbext_private.log_partition(table_id, relation, 'I', dbext_private.effective_now());
END $$;
COMMENT ON FUNCTION dbext_private.adopt_partition(integer, oid) IS 'Captures a partition that was created or attached: its triggers, and the rows that came with it.';

CREATE FUNCTION dbext_private.release_partition(table_id integer, relation oid) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    command text;
BEGIN
    PERFORM dbext_private.hold_name(relation);
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', relation::regclass);
    PERFORM dbext_private.log_partition(table_id, relation, 'D', dbext_private.effective_now());
    FOR command IN SELECT c FROM dbext_private.untrigger_commands(relation) AS c LOOP
        EXECUTE command;
    END LOOP;
END $$;
COMMENT ON FUNCTION dbext_private.release_partition(integer, oid) IS 'Lets go of a partition that was detached: its rows leave the table, its triggers go.';

CREATE FUNCTION dbext_private.follow_partition(table_id integer, relation oid, name text, gone boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- DDL locks what it attaches or detaches (of a detached tree, its root); a seal that looks later finds no lock.
    present boolean := EXISTS (SELECT FROM dbext_private.partition_path(relation) AS p WHERE dbext_private.locked_by_us(p));
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation) THEN
        PERFORM dbext_private.note_schema_event(table_id, 'partition',
            format('partition %s was dropped, which does not tell what rows it held; DETACH PARTITION first records them as deleted', name));
        DELETE FROM dbext_private.tracked_partition AS p WHERE (p.table_id, p.relation) = (follow_partition.table_id, follow_partition.relation);
    ELSIF present AND gone THEN
        DELETE FROM dbext_private.tracked_partition AS p WHERE (p.table_id, p.relation) = (follow_partition.table_id, follow_partition.relation);
        PERFORM dbext_private.release_partition(table_id, relation);
    ELSIF present THEN
        INSERT INTO dbext_private.tracked_partition AS p (table_id, relation, schema_name, table_name)
        SELECT follow_partition.table_id, c.oid, n.nspname, c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.oid = follow_partition.relation ON CONFLICT ON CONSTRAINT tracked_partition_pkey DO UPDATE SET detached = false;
        PERFORM dbext_private.adopt_partition(table_id, relation);
    ELSE
        PERFORM dbext_private.note_schema_event(table_id, 'partition', format('partition %s was %s unseen, and so were its rows', name,
            CASE WHEN gone THEN 'detached' ELSE 'attached' END));
        UPDATE dbext_private.tracked_partition AS p SET detached = true
        WHERE gone AND (p.table_id, p.relation) = (follow_partition.table_id, follow_partition.relation);
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.follow_partition(integer, oid, text, boolean) IS
    'Records the rows of a partition that came or is gone, while the command that did so has it locked; else marks the table.';

CREATE FUNCTION dbext_private.partition_path(relation oid) RETURNS SETOF oid
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY WITH RECURSIVE path (relation) AS (
        SELECT partition_path.relation
        UNION
        SELECT i.inhparent FROM path AS p JOIN pg_inherits AS i ON i.inhrelid = p.relation
    )
    SELECT p.relation FROM path AS p;
END $$;
COMMENT ON FUNCTION dbext_private.partition_path(oid) IS 'A partition and what it is a partition of, up to the top.';

CREATE FUNCTION dbext_private.follow_partitions(table_id integer, root oid) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE dbext_private.tracked_partition AS p SET schema_name = n.nspname, table_name = c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE p.table_id = follow_partitions.table_id AND c.oid = p.relation AND (n.nspname, c.relname) <> (p.schema_name, p.table_name);
    PERFORM dbext_private.follow_partition(p.table_id, p.relation, format('%I.%I', p.schema_name, p.table_name), true)
    FROM dbext_private.tracked_partition AS p WHERE p.table_id = follow_partitions.table_id AND NOT p.detached
        AND p.relation NOT IN (SELECT t.relation FROM dbext_private.partition_tree(root) AS t);
    PERFORM dbext_private.follow_partition(follow_partitions.table_id, c.oid, format('%I.%I', n.nspname, c.relname), false)
    FROM dbext_private.partition_tree(root) AS t JOIN pg_class AS c ON c.oid = t.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE t.relation <> root AND t.relation NOT IN (
        SELECT p.relation FROM dbext_private.tracked_partition AS p WHERE p.table_id = follow_partitions.table_id AND NOT p.detached);
END $$;
COMMENT ON FUNCTION dbext_private.follow_partitions(integer, oid) IS 'Brings the known partitions in line with those that there are.';

CREATE FUNCTION dbext_private.relocate_partitions() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known dbext_private.tracked_partition[] := ARRAY(SELECT p FROM dbext_private.tracked_partition AS p);
BEGIN
    DELETE FROM dbext_private.tracked_partition;
    INSERT INTO dbext_private.tracked_partition (table_id, relation, schema_name, table_name, detached)
    SELECT p.table_id, coalesce(c.oid, p.relation), p.schema_name, p.table_name, p.detached
    FROM unnest(known) AS p LEFT JOIN (pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace)
        ON (n.nspname, c.relname) = (p.schema_name, p.table_name);
END $$;
COMMENT ON FUNCTION dbext_private.relocate_partitions() IS 'In a restored database names tell which partition is which.';

CREATE FUNCTION dbext_private.has_columns(table_id integer) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM dbext_private.tracked_column AS k JOIN dbext_private.tracked_table AS t USING (table_id)
        WHERE k.table_id = has_columns.table_id AND NOT k.gone AND NOT EXISTS (SELECT FROM pg_attribute AS a
            WHERE (a.attrelid, a.attnum, a.attname) = (t.relation, k.attribute_number, k.column_name) AND NOT a.attisdropped))
$$;
COMMENT ON FUNCTION dbext_private.has_columns(integer) IS 'Whether the relation whose OID is known has all columns that are tracked, by number and name.';

CREATE FUNCTION dbext_private.locate(table_id integer) RETURNS oid
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.oid FROM dbext_private.tracked_table AS t JOIN pg_class AS c ON c.oid = t.relation OR c.relname = t.table_name
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    -- Of rows only partitions are captured: where there are none, the columns must do.
    CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM pg_trigger AS g JOIN pg_proc AS p ON p.oid = g.tgfoid
        WHERE g.tgrelid IN (SELECT b.relation FROM dbext_private.partition_tree(c.oid) AS b) AND p.pronamespace = 'dbext_private'::regnamespace
            AND p.proname ~ ('^capture_[a-z]+_' || t.table_id || '$'))
        OR t.row_triggers AND c.oid = t.relation AND c.relkind = 'p' AND NOT EXISTS (SELECT FROM dbext_private.partition_tree(c.oid) AS b WHERE b.kind <> 'p')
            AND dbext_private.has_columns(t.table_id)) AS captured (here)
    WHERE t.table_id = locate.table_id
        AND (c.oid = t.relation)::integer + captured.here::integer + ((n.nspname, c.relname) = (t.schema_name, t.table_name))::integer >= 2
    ORDER BY captured.here DESC, c.oid = t.relation DESC LIMIT 1
$$;
COMMENT ON FUNCTION dbext_private.locate(integer) IS
    'The relation of a tracked table, known by two of three: its OID, our triggers on it, its name (renamed; restored; without triggers). NULL: dropped. A new table of the old name is another table.';

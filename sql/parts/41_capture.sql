-- Capture: one PL/pgSQL function per event and tracked table, written from the catalog alone.
--
-- Statement triggers with transition tables see the final rows of all DML, but for those that a MERGE moves to another partition. A row is
-- recorded only if a tracked column changed. Rows of one statement have at most one record per entry; the identity number orders the records
-- of an entry across statements, because whoever changes a row waits for the row lock of whoever changed it before.
-- Old and new rows are joined with a FULL JOIN, which no cached plan can turn into a nested loop. An UPDATE of one row is spared it: where
-- there is one old row there is at most one new row, and the two need no join. (A row that moves to another partition is deleted before it is
-- inserted, so that there are never more new rows than old ones.)
--
-- Capture functions have no SET search_path of their own, which would cost 3 us a statement. Nothing in them is looked up in one: every function,
-- type and table is written with its schema, every operator as OPERATOR(schema.x), and IS DISTINCT FROM, which would look for an =, is
-- not used but with NULL. The names of transition tables go before any other. A test holds the texts to this, and another one sets traps.
-- Only where the unit is of a type whose equality is not PostgreSQL's own, and might look something up in turn, is the path pinned.

CREATE FUNCTION dbext_private.capture_name(table_id integer, event text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('dbext_private.capture_%s_%s', event, table_id)
$$;
COMMENT ON FUNCTION dbext_private.capture_name(integer, text) IS 'Name of the function that captures an event: insert, update, delete (statements), rowinsert, rowupdate, rowdelete (rows) or truncate.';

CREATE FUNCTION dbext_private.segment_name(table_id integer, segment integer) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(CASE WHEN segment IS NULL THEN 'dbext_private.log_%s' ELSE 'dbext_private.log_%s_%s' END, table_id, segment)
$$;
COMMENT ON FUNCTION dbext_private.segment_name(integer, integer) IS 'Name of a segment of a log; without a segment, of the log itself, from which its segments inherit.';

CREATE FUNCTION dbext_private.is_being_restored() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    -- No other client than those that put dumps back turns this setting off, and only a superuser puts the changelog back.
    SELECT NOT current_setting('check_function_bodies')::boolean AND (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = session_user)
        AND NOT dbext_private.is_home()
$$;
COMMENT ON FUNCTION dbext_private.is_being_restored() IS
    'Whether rows that come are those of a dump: what it puts back after the triggers, in a second step, was recorded where it was taken.';

CREATE FUNCTION dbext_private.confirm_relation(table_id integer, relation oid) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (
        SELECT FROM dbext_private.tracked_table AS t JOIN pg_namespace AS n ON n.nspname = t.schema_name
        JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = t.table_name
        WHERE t.table_id = confirm_relation.table_id AND c.oid = coalesce(pg_partition_root(confirm_relation.relation), confirm_relation.relation)) THEN
        RETURN NOT dbext_private.is_being_restored();
    ELSIF NOT EXISTS (SELECT FROM dbext_private.tracked_table AS t WHERE t.table_id = confirm_relation.table_id) THEN
        RETURN false;  -- a copy of the schema alone, where nothing is tracked
    ELSIF EXISTS (SELECT FROM dbext_private.tracked_partition AS p WHERE (p.table_id, p.relation) = (confirm_relation.table_id, confirm_relation.relation)) THEN
        RETURN false;  -- a partition that was detached behind our back: its rows are no longer the table's
    END IF;
    PERFORM dbext_private.refuse(format('a capture function of dbext is attached to the wrong table %s', relation::regclass),
        'Drop that trigger; dp_track makes the right ones.', 'DP099');
END $$;
COMMENT ON FUNCTION dbext_private.confirm_relation(integer, oid) IS
    'Called when OIDs differ from those at dp_track (a restored database, a partition): names decide whether the trigger sits on its own table. False: nothing is to be recorded.';

CREATE FUNCTION dbext_private.capture_events(table_id integer) RETURNS text[]
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN t.row_triggers THEN ARRAY['rowinsert', 'rowupdate', 'rowdelete', 'truncate'] ELSE ARRAY['insert', 'update', 'delete', 'truncate'] END
    FROM dbext_private.tracked_table AS t WHERE t.table_id = capture_events.table_id
$$;
COMMENT ON FUNCTION dbext_private.capture_events(integer) IS
    'What a table is captured by: triggers of statements, or of rows, where its owner chose them or logical replication writes, which fires no others.';

CREATE TYPE dbext_private.column_lists AS (
    keys text, olds text, news text,            -- log columns:  , key_1   , old_2   , new_2
    old_keys text, old_values text,             -- expressions over the old rows: o, or OLD in a row trigger
    new_keys text, new_values text,             -- expressions over the new rows: n, or NEW
    null_values text,                           -- as many NULLs as there are values
    either_keys text,                           -- the key of whichever row is there
    same_key text, changed text, no_old text, no_new text, unit_missing text,
    types text                                  -- of the columns, by OID
);
COMMENT ON TYPE dbext_private.column_lists IS 'Pieces of SQL of which the capture functions of one table are made. Lists begin with their comma.';

CREATE FUNCTION dbext_private.capture_columns(table_id integer, o text DEFAULT 'o', n text DEFAULT 'n') RETURNS dbext_private.column_lists
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        WITH tracked AS (
            SELECT c.position, c.is_key AS is_unit, c.gone, quote_ident(c.column_name) AS name, dbext_private.base_type(a.atttypid) AS type_id,
                a.atttypid, NOT a.attnotnull AS may_be_null, row_number() OVER (PARTITION BY c.is_key ORDER BY c.position) = 1 AS leads,
                CASE WHEN c.is_key THEN dbext_private.key_operator(dbext_private.base_type(a.atttypid)) END AS equals
            FROM dbext_private.tracked_table AS t JOIN dbext_private.tracked_column AS c USING (table_id)
            LEFT JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum = c.attribute_number AND NOT a.attisdropped
            WHERE t.table_id = capture_columns.table_id
        )
        SELECT ROW(string_agg(format(', key_%s', position), '' ORDER BY position) FILTER (WHERE is_unit),
            coalesce(string_agg(format(', old_%s', position), '' ORDER BY position) FILTER (WHERE NOT is_unit), ''),
            coalesce(string_agg(format(', new_%s', position), '' ORDER BY position) FILTER (WHERE NOT is_unit), ''),
            string_agg(format(', %s.%s', o, name), '' ORDER BY position) FILTER (WHERE is_unit),
            coalesce(string_agg(CASE WHEN gone THEN ', NULL' ELSE format(', %s.%s', o, name) END, '' ORDER BY position) FILTER (WHERE NOT is_unit), ''),
            string_agg(format(', %s.%s', n, name), '' ORDER BY position) FILTER (WHERE is_unit),
            coalesce(string_agg(CASE WHEN gone THEN ', NULL' ELSE format(', %s.%s', n, name) END, '' ORDER BY position) FILTER (WHERE NOT is_unit), ''),
            coalesce(string_agg(', NULL', '') FILTER (WHERE NOT is_unit), ''),
            string_agg(format(', coalesce(%2$s.%3$s, %1$s.%3$s)', o, n, name), '' ORDER BY position) FILTER (WHERE is_unit),
            string_agg(format('%s.%s %s %s.%2$s', o, name, equals, n), ' AND ' ORDER BY position) FILTER (WHERE is_unit),
            coalesce(string_agg(dbext_private.differs(type_id, format('%s.%s', o, name), format('%s.%s', n, name), NOT may_be_null), ' OR ' ORDER BY position) FILTER (WHERE NOT is_unit AND NOT gone), 'false'),
            string_agg(format('%s.%s IS NOT DISTINCT FROM NULL', o, name), '') FILTER (WHERE is_unit AND leads),
            string_agg(format('%s.%s IS NOT DISTINCT FROM NULL', n, name), '') FILTER (WHERE is_unit AND leads),
            string_agg(format('%s.%s IS NOT DISTINCT FROM NULL', n, name), ' OR ' ORDER BY position) FILTER (WHERE is_unit AND may_be_null),
            string_agg(coalesce(atttypid, 0)::text, ' ' ORDER BY position))::dbext_private.column_lists
        FROM tracked
    );
END $$;
COMMENT ON FUNCTION dbext_private.capture_columns(integer, text, text) IS 'The column lists of a tracked table as it is now; o and n are what its old and new rows are called.';

CREATE FUNCTION dbext_private.capture_statement(table_id integer, event text, moment text) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    of_row boolean := event LIKE 'row%';
    c dbext_private.column_lists := dbext_private.capture_columns(table_id, CASE WHEN of_row THEN 'OLD' ELSE 'o' END, CASE WHEN of_row THEN 'NEW' ELSE 'n' END);
    -- Straight into the segment: routing rows to it from the log would cost 2 us a statement.
    target text := (SELECT format('INSERT INTO %s (op, mutated_at, xid', dbext_private.segment_name(t.table_id, t.segment))
        FROM dbext_private.tracked_table AS t WHERE t.table_id = capture_statement.table_id);
    stamp text := format(', %s, pg_catalog.pg_current_xact_id()', moment);
BEGIN
    CASE event
        WHEN 'insert' THEN
            RETURN target || c.keys || c.news || E')\n    SELECT ''I''' || stamp || c.new_keys || c.new_values || E'\n    FROM dbext_new AS n';
        WHEN 'delete' THEN
            RETURN target || c.keys || c.olds || E')\n    SELECT ''D''' || stamp || c.old_keys || c.old_values || E'\n    FROM dbext_old AS o';
        WHEN 'update' THEN
            RETURN target || c.keys || c.olds || c.news || E')\n    SELECT CASE WHEN ' || c.no_old || ' THEN ''I'' WHEN ' || c.no_new
                || ' THEN ''D'' ELSE ''U'' END::pg_catalog."char"' || stamp || c.either_keys || c.old_values || c.new_values
                || E'\n    FROM dbext_old AS o FULL JOIN dbext_new AS n ON ' || c.same_key
                || E'\n    WHERE ' || c.changed || ' OR ' || c.no_old || ' OR ' || c.no_new;
        WHEN 'single' THEN
            RETURN target || c.keys || c.olds || c.news || E')\n        SELECT ''U''' || stamp || c.new_keys || c.old_values || c.new_values
                || E'\n        FROM dbext_old AS o CROSS JOIN dbext_new AS n WHERE ' || c.same_key || ' AND (' || c.changed || ')';
        WHEN 'rowinsert' THEN
            RETURN target || c.keys || c.news || ') VALUES (''I''' || stamp || c.new_keys || c.new_values || ')';
        WHEN 'rowdelete' THEN
            RETURN target || c.keys || c.olds || ') VALUES (''D''' || stamp || c.old_keys || c.old_values || ')';
        WHEN 'rowupdate' THEN
            RETURN target || c.keys || c.olds || c.news || ') VALUES (''U''' || stamp || c.new_keys || c.old_values || c.new_values || ')';
        WHEN 'truncate' THEN
            -- One marker: from its number on every entry is absent. It reads no table, so it needs no snapshot and no isolation level
            -- can make it miss rows; TRUNCATE's ACCESS EXCLUSIVE lock puts it after every earlier record and before every later one.
            RETURN target || E')\n    VALUES (''T''' || stamp || ')';
    END CASE;
END $$;
COMMENT ON FUNCTION dbext_private.capture_statement(integer, text, text) IS 'The INSERT that records one event; moment is SQL for its time. single: an UPDATE of one row that keeps its unit.';

CREATE FUNCTION dbext_private.on_its_table(table_id integer) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(CASE WHEN c.relkind = 'p' THEN '(TG_RELID OPERATOR(pg_catalog.=) %1$s OR coalesce(pg_catalog.pg_partition_root(TG_RELID), 0) OPERATOR(pg_catalog.=) %1$s)'
        ELSE 'TG_RELID OPERATOR(pg_catalog.=) %1$s' END, t.relation)
    FROM dbext_private.tracked_table AS t LEFT JOIN pg_class AS c ON c.oid = t.relation WHERE t.table_id = on_its_table.table_id
$$;
COMMENT ON FUNCTION dbext_private.on_its_table(integer) IS
    'SQL that says whether a trigger sits on the table whose OID is known, or on a partition of it: where it does not, names decide.';

CREATE FUNCTION dbext_private.capture_moment(table_id integer) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(E'        IF NOT (%s) AND NOT dbext_private.confirm_relation(%s, TG_RELID) THEN\n            RETURN NULL;\n        END IF;\n'
        '        moment := dbext_private.effective_now();\n', dbext_private.on_its_table(table_id), table_id)
$$;
COMMENT ON FUNCTION dbext_private.capture_moment(integer) IS
    'What a capture function does where more than the clock must be asked: the name of its table is confirmed, and dbext.now is heard.';

CREATE FUNCTION dbext_private.refuse_missing_unit(missing text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN missing IS NULL THEN ''
        ELSE format(E'    IF %s THEN\n        PERFORM dbext_private.refuse(''a tracked table takes no row whose privacy unit is NULL'');\n    END IF;\n', missing) END
$$;
COMMENT ON FUNCTION dbext_private.refuse_missing_unit(text) IS 'The part of a capture function that refuses rows without a unit; nothing where no row can be.';

CREATE FUNCTION dbext_private.capture_row(table_id integer, event text, usual text) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c dbext_private.column_lists := dbext_private.capture_columns(table_id, 'OLD', 'NEW');
    missing text := CASE WHEN event <> 'rowdelete' THEN c.unit_missing END;
    statement text := dbext_private.capture_statement(table_id, event, 'moment');
BEGIN
    IF event = 'rowupdate' THEN
        -- A changed unit is a deletion and an insertion.
        usual := format('%s AND (%s) AND %s', c.same_key, c.changed, usual);
        statement := format(E'IF (%s) IS NOT TRUE THEN\n            %s;\n            %s;\n        ELSIF %s THEN\n            %s;\n        END IF', c.same_key,
            dbext_private.capture_statement(table_id, 'rowdelete', 'moment'), dbext_private.capture_statement(table_id, 'rowinsert', 'moment'), c.changed, statement);
    END IF;
    -- PL/pgSQL keeps plans for columns of OLD and NEW of the types that it met first: with other types this is another function.
    -- To return a variable costs nothing; to return NULL an expression is made ready, for 800 instructions.
    RETURN format(E'\n-- types %s\n#variable_conflict use_variable\nDECLARE\n    moment pg_catalog.timestamptz;\n    nothing pg_catalog.bool;\nBEGIN\n    IF %s%s THEN\n        %s;\n    ELSE\n%s%s        %s;\n'
        '    END IF;\n    RETURN nothing;\nEND ', c.types, usual, ' AND NOT (' || missing || ')',
        dbext_private.capture_statement(table_id, event, 'pg_catalog.clock_timestamp()'), dbext_private.capture_moment(table_id),
        dbext_private.refuse_missing_unit(missing), statement);
END $$;
COMMENT ON FUNCTION dbext_private.capture_row(integer, text, text) IS
    'Source text of the function of a row trigger: what is usual with one test and one INSERT, and whatever else may be.';

CREATE FUNCTION dbext_private.capture_single(table_id integer) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(E'    IF changed OPERATOR(pg_catalog.=) 1 THEN\n        %s;\n        IF FOUND THEN\n            RETURN nothing;\n        END IF;\n'
        '        PERFORM FROM dbext_old AS o CROSS JOIN dbext_new AS n WHERE %s;\n        IF FOUND THEN\n            RETURN nothing;\n        END IF;\n    END IF;\n',
        dbext_private.capture_statement(table_id, 'single', 'moment'), (dbext_private.capture_columns(table_id)).same_key)
$$;
COMMENT ON FUNCTION dbext_private.capture_single(integer) IS
    'The part of an UPDATE''s capture function that records one row, or sees that nothing was changed in it. It leaves a changed unit to the rest.';

CREATE FUNCTION dbext_private.capture_body(table_id integer, event text) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    missing text := 'EXISTS (SELECT FROM dbext_new AS n WHERE ' || (dbext_private.capture_columns(table_id)).unit_missing || ')';
    -- A session that once set dbext.now has a text there ever after, perhaps an empty one.
    usual text := dbext_private.on_its_table(table_id) || ' AND pg_catalog.current_setting(''dbext.now'', true) IS NULL';
    partitioned boolean := (SELECT c.relkind = 'p' FROM dbext_private.tracked_table AS t JOIN pg_class AS c ON c.oid = t.relation WHERE t.table_id = capture_body.table_id);
    -- Tells no old row, one and several apart; with none it is done.
    count_changed text := E'    PERFORM FROM dbext_old LIMIT 2;\n    IF NOT FOUND THEN\n        RETURN nothing;\n    END IF;\n    GET DIAGNOSTICS changed := ROW_COUNT;\n';
    body text;
BEGIN
    IF event LIKE 'row%' THEN
        RETURN dbext_private.capture_row(table_id, event, usual);
    END IF;
    -- A column of the user's may be called moment, too: where PL/pgSQL could read a name as either, it is the variable.
    body := format(E'\n#variable_conflict use_variable\nDECLARE\n    moment pg_catalog.timestamptz;\n    changed pg_catalog.int8;\n    nothing pg_catalog.bool;\nBEGIN\n%s'
        '    moment := pg_catalog.clock_timestamp();\n    IF NOT (%s) THEN\n%s    END IF;\n', CASE WHEN event = 'update' THEN count_changed ELSE '' END,
        usual, dbext_private.capture_moment(table_id));
    IF event = 'update' THEN
        body := body || dbext_private.capture_single(table_id);
    END IF;
    IF event IN ('insert', 'update') THEN
        body := body || dbext_private.refuse_missing_unit(missing);
    ELSIF event = 'truncate' AND partitioned THEN
        -- Which entries are in this partition, only its rows can tell: this runs before they are gone.
        RETURN body || format(E'    PERFORM dbext_private.log_partition(%s, TG_RELID, ''D'', moment);\n    RETURN nothing;\nEND ', table_id);
    END IF;
    RETURN body || '    ' || dbext_private.capture_statement(table_id, event, 'moment') || E';\n    RETURN nothing;\nEND ';
END $$;
COMMENT ON FUNCTION dbext_private.capture_body(integer, text) IS 'Source text of a capture function.';

CREATE FUNCTION dbext_private.capture_path(table_id integer) RETURNS text[]
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN NOT coalesce(bool_and(dbext_private.compares_by_value(dbext_private.base_type(a.atttypid))), false)
        THEN ARRAY['search_path=pg_catalog, pg_temp'] END
    FROM dbext_private.tracked_table AS t JOIN dbext_private.tracked_column AS c USING (table_id)
    LEFT JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum = c.attribute_number AND NOT a.attisdropped
    WHERE t.table_id = capture_path.table_id AND c.is_key
$$;
COMMENT ON FUNCTION dbext_private.capture_path(integer) IS
    'Settings of a table''s capture functions: none, or a path for them alone where the unit''s equality is somebody else''s than PostgreSQL''s.';

CREATE FUNCTION dbext_private.write_capture(table_id integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    event text;
    name text;
    body text;
    path text[];
    written boolean := false;
BEGIN
    -- Whoever writes functions later reads the catalog anew: no segment that was left comes back, and no column is called what it was called before.
    PERFORM FROM dbext_private.tracked_table AS t WHERE t.table_id = write_capture.table_id FOR NO KEY UPDATE;
    path := dbext_private.capture_path(table_id);
    FOREACH event IN ARRAY dbext_private.capture_events(table_id) LOOP
        name := dbext_private.capture_name(table_id, event);
        body := CASE WHEN dbext_private.can_capture(table_id) THEN dbext_private.capture_body(table_id, event) ELSE E'\nBEGIN\n    RETURN NULL;\nEND ' END;
        CONTINUE WHEN EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = to_regprocedure(name || '()') AND p.prosrc = body AND p.proconfig IS NOT DISTINCT FROM path);
        EXECUTE format('CREATE OR REPLACE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER %s AS %L', name,
            CASE WHEN path IS NOT NULL THEN 'SET search_path = pg_catalog, pg_temp' ELSE '' END, body);
        EXECUTE format('REVOKE ALL ON FUNCTION %s() FROM PUBLIC', name);
        written := true;
    END LOOP;
    RETURN written;
END $$;
COMMENT ON FUNCTION dbext_private.write_capture(integer) IS
    'Makes the capture functions of a table fit its columns as they are; says whether any had to change. Without its unit a table is not captured.';

CREATE FUNCTION dbext_private.can_capture(table_id integer) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM dbext_private.tracked_column AS c WHERE c.table_id = can_capture.table_id AND c.is_key AND c.gone)
$$;
COMMENT ON FUNCTION dbext_private.can_capture(integer) IS 'Whether the columns that identify rows are still there.';

-- Tracking again: what was tracked before resumes; what nothing ever left about may be tracked anew. All of it is called by begin_tracking.

CREATE FUNCTION dbext_private.refuse_in_use(relation oid) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.refuse(format('what was recorded of table %s is in use, by a dump, a seal or dp_retain', relation::regclass),
        'Try again when that has ended: writers of the table would have to wait for it.', 'DP031');
END $$;
COMMENT ON FUNCTION dbext_private.refuse_in_use(oid) IS 'Refuses to wait any longer with a table locked.';

CREATE FUNCTION dbext_private.columns_there(table_id integer, relation oid)
RETURNS TABLE (column_name text, is_unit boolean, is_key boolean, number smallint)
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.column_name, c.is_unit, c.is_key, a.attnum
    FROM dbext_private.tracked_column AS c JOIN pg_attribute AS a ON a.attrelid = columns_there.relation AND a.attname = c.column_name
    JOIN dbext_private.recorded_columns(columns_there.table_id) AS r ON r.number = c.position
        AND r.type_id = dbext_private.base_type(a.atttypid) AND (r.collation_id = a.attcollation OR NOT c.is_key)
    WHERE c.table_id = columns_there.table_id AND NOT a.attisdropped
$$;
COMMENT ON FUNCTION dbext_private.columns_there(integer, oid) IS
    'Columns tracked before that a relation has, by name and with the same type; of the unit with the same collation, too.';

CREATE FUNCTION dbext_private.note_lost_column(lost dbext_private.tracked_column) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT dbext_private.note_schema_event(lost.table_id, 'column', format('column "%s" was dropped or given another type%s', lost.column_name,
        CASE WHEN lost.is_key THEN ' or collation; it identified entries, so nothing is captured any more' ELSE '; it reads as NULL since' END))
$$;
COMMENT ON FUNCTION dbext_private.note_lost_column(dbext_private.tracked_column) IS 'Marks a table whose tracked column is gone.';

CREATE FUNCTION dbext_private.note_lost_columns(table_id integer) RETURNS void
LANGUAGE sql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
    -- One that was taken up again, with its new type, is lost to releases that were declared before alone.
    SELECT dbext_private.note_lost_column(c) FROM dbext_private.tracked_column AS c
    WHERE c.table_id = note_lost_columns.table_id AND c.gone AND (
        EXISTS (SELECT FROM dbext_private.release AS r WHERE r.table_id = c.table_id AND r.state = 'active')
        OR NOT EXISTS (SELECT FROM dbext_private.tracked_column AS k WHERE k.table_id = c.table_id AND k.column_name = c.column_name AND NOT k.gone))
$$;
COMMENT ON FUNCTION dbext_private.note_lost_columns(integer) IS 'Marks a table that was recorded anew for columns that are still lost.';

CREATE FUNCTION dbext_private.widens(from_type oid, to_type oid) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM pg_cast AS c LEFT JOIN pg_proc AS p ON p.oid = c.castfunc
        WHERE (c.castsource, c.casttarget, c.castcontext) = (widens.from_type, widens.to_type, 'i') AND widens.to_type <> 'name'::regtype AND (
            (widens.from_type, widens.to_type) IN (('varchar'::regtype, 'text'::regtype), ('text'::regtype, 'varchar'::regtype))
            OR c.castmethod = 'f' AND p.provolatile = 'i' AND EXISTS (
            SELECT FROM pg_opclass AS o JOIN pg_am AS m ON m.oid = o.opcmethod AND m.amname = 'btree' JOIN pg_amop AS a ON a.amopfamily = o.opcfamily
            WHERE o.opcintype = widens.to_type AND o.opcdefault AND (a.amoplefttype, a.amoprighttype, a.amopstrategy) = (widens.from_type, widens.to_type, 3))))
$$;
COMMENT ON FUNCTION dbext_private.widens(oid, oid) IS
    'Whether every value of a type is one of another, equal under the same family of operators: integer to bigint, varchar to text. Entries stay who they are.';

CREATE FUNCTION dbext_private.widen_columns(table_id integer, relation oid) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    widened record;
BEGIN
    FOR widened IN
        SELECT k.attname AS name, t.relname AS table_name, format_type(dbext_private.base_type(a.atttypid), -1)
            || CASE WHEN k.atttypid = (SELECT y.typarray FROM pg_type AS y WHERE y.oid = r.type_id) THEN '[]' ELSE '' END AS type_name
        FROM dbext_private.tracked_column AS c JOIN pg_attribute AS a ON a.attrelid = widen_columns.relation AND a.attname = c.column_name AND NOT a.attisdropped
        JOIN dbext_private.recorded_columns(widen_columns.table_id) AS r ON r.number = c.position AND r.collation_id = a.attcollation
        JOIN pg_class AS t ON t.relname ~ ('^(log|deferred|admission|change|row)_' || c.table_id || '$') AND t.relnamespace = 'dbext_private'::regnamespace
        JOIN pg_attribute AS k ON k.attrelid = t.oid AND k.attname ~ ('^(key|old|new|image)_' || c.position || '$')
        WHERE c.table_id = widen_columns.table_id AND dbext_private.widens(r.type_id, dbext_private.base_type(a.atttypid))
    LOOP
        EXECUTE format('ALTER TABLE dbext_private.%I ALTER COLUMN %I TYPE %s', widened.table_name, widened.name, widened.type_name);
    END LOOP;
    UPDATE dbext_private.tracked_column AS c SET type_name = format_type(r.type_id, -1) FROM dbext_private.recorded_columns(widen_columns.table_id) AS r
    WHERE c.table_id = widen_columns.table_id AND r.number = c.position;
END $$;
COMMENT ON FUNCTION dbext_private.widen_columns(integer, oid) IS 'Lets the run-time tables follow columns that were given a wider type.';

CREATE FUNCTION dbext_private.add_columns(table_id integer, relation oid, numbers smallint[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- Numbers of columns that went with their type are not used again.
    last integer := (SELECT max(substring(a.attname FROM '_(\d+)$')::integer) FROM pg_attribute AS a
        WHERE a.attrelid = to_regclass(format('dbext_private.log_%s', table_id)) AND a.attname ~ '^(key|new)_\d+$');
    place text;
BEGIN
    PERFORM dbext_private.refuse_unreachable_types(relation, numbers);
    last := greatest(last, (SELECT max(c.position) FROM dbext_private.tracked_column AS c WHERE c.table_id = add_columns.table_id));
    INSERT INTO dbext_private.tracked_column (table_id, position, column_name, attribute_number, type_name, is_unit, is_key)
    SELECT add_columns.table_id, last + row_number() OVER (ORDER BY a.attnum), a.attname, a.attnum, format_type(dbext_private.base_type(a.atttypid), -1), false, false
    FROM pg_attribute AS a WHERE a.attrelid = add_columns.relation AND a.attnum = ANY (numbers);
    FOR place IN
        SELECT format('ALTER TABLE dbext_private.%s_%s ADD COLUMN %s', t.name, c.table_id,
            ltrim(dbext_private.run_time_columns(c.table_id, ARRAY[t.prefix], false, c.position), ', '))
        FROM dbext_private.tracked_column AS c CROSS JOIN (VALUES ('log', 'old'), ('log', 'new'), ('deferred', 'old'), ('deferred', 'new'),
            ('admission', 'image'), ('change', 'old'), ('change', 'new')) AS t (name, prefix)
        WHERE c.table_id = add_columns.table_id AND c.position > last
    LOOP
        EXECUTE place;
    END LOOP;
END $$;
COMMENT ON FUNCTION dbext_private.add_columns(integer, oid, smallint[]) IS 'Records more columns of a table from now on; entries tell them from NULL at the re-base that follows.';

CREATE FUNCTION dbext_private.same_arguments(
    known dbext_private.tracked_table, relation oid, tick interval, zone text, unit_numbers smallint[], row_key smallint[], column_numbers smallint[],
    rows_per_unit integer) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parts record := dbext_private.tick_kind_and_size(tick);
    there smallint[] := ARRAY(SELECT k.number FROM dbext_private.columns_there(known.table_id, relation) AS k ORDER BY k.number);
    unit_there smallint[] := ARRAY(SELECT k.number FROM dbext_private.columns_there(known.table_id, relation) AS k WHERE k.is_unit ORDER BY k.number);
    rows_there smallint[] := ARRAY(SELECT k.number FROM dbext_private.columns_there(known.table_id, relation) AS k WHERE k.is_key AND NOT k.is_unit ORDER BY k.number);
BEGIN
    RETURN (parts.kind, parts.size, dbext_private.zone_name(zone)) IS NOT DISTINCT FROM (known.tick_kind, known.tick_size, known.time_zone)
        AND unit_there = ARRAY(SELECT u FROM unnest(unit_numbers) AS u ORDER BY u)
        AND known.rows_per_unit IS NOT DISTINCT FROM same_arguments.rows_per_unit AND rows_there = ARRAY(SELECT u FROM unnest(row_key) AS u ORDER BY u)
        AND cardinality(unit_there || rows_there) = (SELECT count(*) FROM dbext_private.tracked_column AS c WHERE c.table_id = known.table_id AND c.is_key)
        AND (column_numbers IS NULL OR unit_numbers || column_numbers @> there);
END $$;
COMMENT ON FUNCTION dbext_private.same_arguments(dbext_private.tracked_table, oid, interval, text, smallint[], smallint[], smallint[], integer) IS
    'Whether a table is to be tracked as it was before, perhaps with more columns. Without column_numbers: with the columns of before that are still there.';

CREATE FUNCTION dbext_private.forget_unused(table_id integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Whoever seals, sets a budget or changes a constraint locks these rows first, too, and finds the head gone; without a budget nothing is charged.
    PERFORM FROM dbext_private.seal_head AS h WHERE h.table_id = forget_unused.table_id FOR UPDATE;
    PERFORM FROM dbext_private.tracked_table AS t WHERE t.table_id = forget_unused.table_id FOR UPDATE;
    IF EXISTS (SELECT FROM dbext_private.ledger AS l WHERE l.table_id = forget_unused.table_id)
        OR EXISTS (SELECT FROM dbext_private.release AS r WHERE r.table_id = forget_unused.table_id)
        OR EXISTS (SELECT FROM dbext_private.question AS q WHERE q.table_id = forget_unused.table_id) THEN
        RETURN false;
    END IF;
    DELETE FROM dbext_private.seal_head AS h WHERE h.table_id = forget_unused.table_id;
    DELETE FROM dbext_private.schema_event AS e WHERE e.table_id = forget_unused.table_id;
    DELETE FROM dbext_private.seal AS s WHERE s.table_id = forget_unused.table_id;
    DELETE FROM dbext_private.entry_type AS e WHERE e.table_id = forget_unused.table_id;
    DELETE FROM dbext_private.table_grant AS g WHERE g.table_id = forget_unused.table_id;
    DELETE FROM dbext_private.allowance AS a WHERE a.table_id = forget_unused.table_id;
    DELETE FROM dbext_private.tracked_column AS c WHERE c.table_id = forget_unused.table_id;
    DELETE FROM dbext_private.tracked_partition AS p WHERE p.table_id = forget_unused.table_id;
    PERFORM dbext_private.drop_capture_functions(table_id, '{}');
    PERFORM dbext_private.drop_segments(table_id, ARRAY(SELECT s.segment FROM dbext_private.log_segment AS s WHERE s.table_id = forget_unused.table_id));
    EXECUTE format('DROP TABLE dbext_private.log_%s, dbext_private.deferred_%1$s, dbext_private.admission_%1$s, dbext_private.change_%1$s', table_id);
    EXECUTE format('DROP TABLE IF EXISTS dbext_private.row_%s', table_id);
    RETURN true;
END $$;
COMMENT ON FUNCTION dbext_private.forget_unused(integer) IS
    'Empties the number of a table that never had a budget, a release or a question, so that nothing ever left about it; false, with nothing changed, if it had.';

CREATE FUNCTION dbext_private.resume_tracking(
    known dbext_private.tracked_table, relation oid, tick interval, zone text, unit_numbers smallint[], row_key smallint[], column_numbers smallint[],
    rows_per_unit integer, capture text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    added smallint[] := ARRAY(SELECT u FROM unnest(unit_numbers || column_numbers) AS u EXCEPT SELECT k.number FROM dbext_private.columns_there(known.table_id, relation) AS k);
    whole boolean := known.tracked AND (added = '{}' OR column_numbers IS NULL) AND NOT EXISTS (SELECT FROM dbext_private.triggers_missing(known.table_id, relation))
        AND NOT EXISTS (SELECT FROM dbext_private.schema_event AS e WHERE e.table_id = known.table_id AND e.through_tick IS NULL);
BEGIN
    IF whole AND (capture IS NULL OR capture = known.capture) THEN
        PERFORM dbext_private.refuse(format('table %s is tracked already', relation::regclass), NULL, 'DP004');
    END IF;
    IF NOT dbext_private.same_arguments(known, relation, tick, zone, unit_numbers, row_key, column_numbers, rows_per_unit) THEN
        PERFORM dbext_private.refuse(format('table %s was tracked before with another tick, time zone, unit, rows_per_unit or columns', relation::regclass),
            'Its ledger and the entries already admitted depend on them: use the same arguments, and the unit''s type and collation of before. '
            'To begin anew, put the rows into a new table of another name and track that.');
    END IF;
    IF rows_per_unit IS NOT NULL AND column_numbers IS NOT NULL AND added <> '{}' THEN
        PERFORM dbext_private.refuse(format('the columns of table %s, of which a unit has several rows, were chosen when it was first tracked', relation::regclass),
            'Leave columns out to go on with those, or put the rows into a new table of another name and track that.');
    END IF;
    IF whole THEN
        -- Nobody writes while the triggers change, so nothing goes unseen.
        UPDATE dbext_private.tracked_table AS t SET tracked = false WHERE t.table_id = known.table_id;
        RETURN false;
    END IF;
    UPDATE dbext_private.tracked_table AS t SET relation = resume_tracking.relation, tracked = false, schema_name = n.nspname, table_name = c.relname
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = resume_tracking.relation AND t.table_id = known.table_id;
    UPDATE dbext_private.tracked_column AS c SET attribute_number = coalesce(k.number, c.attribute_number), gone = k.number IS NULL
    FROM dbext_private.tracked_column AS one LEFT JOIN dbext_private.columns_there(known.table_id, resume_tracking.relation) AS k USING (column_name)
    WHERE c.table_id = known.table_id AND one.table_id = c.table_id AND one.position = c.position;
    IF column_numbers IS NOT NULL THEN
        PERFORM dbext_private.add_columns(known.table_id, relation, added);
    END IF;
    IF known.tracked THEN
        PERFORM dbext_private.mark_truncation(known.table_id, dbext_private.effective_now());
    ELSE
        PERFORM dbext_private.empty_log(known.table_id);
    END IF;
    PERFORM dbext_private.note_lost_columns(known.table_id);
    RETURN true;
END $$;
COMMENT ON FUNCTION dbext_private.resume_tracking(dbext_private.tracked_table, oid, interval, text, smallint[], smallint[], smallint[], integer, text) IS
    'Takes a table up again: ledger, admission and changes go on, with a fresh baseline after a T marker. Without column_numbers: the columns of before that are still there; others are added. False: only the triggers are to change, and there is no baseline.';

CREATE FUNCTION dbext_private.empty_log(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('TRUNCATE dbext_private.log_%s, dbext_private.deferred_%1$s', table_id);
    UPDATE dbext_private.seal_head AS h SET snapshot = '1:1:' WHERE h.table_id = empty_log.table_id;
    PERFORM dbext_private.mark_truncation(table_id, dbext_private.effective_now());
END $$;
COMMENT ON FUNCTION dbext_private.empty_log(integer) IS
    'Starts the log of a resumed table with a T marker: with the baseline behind it, settled to current image is one ordinary mutation per changed entry.';

CREATE FUNCTION dbext_private.mark_truncation(table_id integer, moment timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('INSERT INTO dbext_private.log_%s (op, mutated_at, xid) VALUES (''T'', $1, pg_current_xact_id())', table_id) USING moment;
    PERFORM dbext_private.close_marks(table_id);
END $$;
COMMENT ON FUNCTION dbext_private.mark_truncation(integer, timestamptz) IS
    'A T marker, after which every entry is absent that is not recorded again at once; the marks of what went unseen end there.';

CREATE FUNCTION dbext_private.protected_subject(table_id integer) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(CASE WHEN t.rows_per_unit IS NULL THEN 'one row of %I.%I, identified by (%s)' ELSE 'all rows of %I.%I that share (%s), of which the first %s by primary key count' END,
        t.schema_name, t.table_name, string_agg(quote_ident(c.column_name), ', ' ORDER BY c.position), t.rows_per_unit)
    FROM dbext_private.tracked_table AS t JOIN dbext_private.tracked_column AS c USING (table_id)
    WHERE t.table_id = protected_subject.table_id AND c.is_unit GROUP BY t.schema_name, t.table_name, t.rows_per_unit
$$;
COMMENT ON FUNCTION dbext_private.protected_subject(integer) IS 'What is protected, in words.';

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
    INSERT INTO dbext_private.lineage (id) VALUES (gen_random_uuid()) ON CONFLICT DO NOTHING;
END $$;
COMMENT ON FUNCTION dbext_private.remember_cluster() IS 'Stores the identity of the cluster at the first dp_track; refuses elsewhere.';

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

CREATE FUNCTION dbext_private.recorded_columns(table_id integer) RETURNS TABLE (number integer, type_id oid, collation_id oid)
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT k.position, a.atttypid, a.attcollation FROM dbext_private.tracked_column AS k JOIN pg_attribute AS a
        ON a.attrelid = to_regclass(format('dbext_private.log_%s', k.table_id))
        AND a.attname = format(CASE WHEN k.is_key THEN 'key_%s' ELSE 'new_%s' END, k.position) AND NOT a.attisdropped
    WHERE k.table_id = recorded_columns.table_id;
END $$;
COMMENT ON FUNCTION dbext_private.recorded_columns(integer) IS
    'Type and collation in which the log records each tracked column, by position: those of the column when the table was first tracked.';

CREATE FUNCTION dbext_private.follow_columns(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lost dbext_private.tracked_column;
BEGIN
    -- Types and collations are compared with those of the log by OID: no setting and no renaming makes a difference.
    FOR lost IN
        UPDATE dbext_private.tracked_column AS k SET gone = true FROM dbext_private.tracked_table AS t
        WHERE t.table_id = follow_columns.table_id AND k.table_id = t.table_id AND NOT k.gone AND NOT EXISTS (
            SELECT FROM pg_attribute AS a JOIN dbext_private.recorded_columns(follow_columns.table_id) AS r
                ON r.type_id = dbext_private.base_type(a.atttypid) AND (r.collation_id = a.attcollation OR NOT k.is_key)
            WHERE a.attrelid = t.relation AND a.attnum = k.attribute_number AND NOT a.attisdropped AND r.number = k.position)
        RETURNING k.*
    LOOP
        PERFORM dbext_private.note_lost_column(lost);
    END LOOP;
    PERFORM dbext_private.note_schema_event(k.table_id, 'column',
        format('column "%s" was given another collation; what is recorded of it compares as before', k.column_name))
    FROM dbext_private.tracked_table AS t JOIN dbext_private.tracked_column AS k USING (table_id)
    JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum = k.attribute_number
    JOIN dbext_private.recorded_columns(follow_columns.table_id) AS r ON r.number = k.position
    WHERE t.table_id = follow_columns.table_id AND NOT k.gone AND NOT k.is_key AND r.collation_id <> a.attcollation;
    UPDATE dbext_private.tracked_column AS k SET type_name = format_type(r.type_id, -1) FROM dbext_private.recorded_columns(follow_columns.table_id) AS r
    WHERE k.table_id = follow_columns.table_id AND k.position = r.number AND k.type_name <> format_type(r.type_id, -1);
    -- DROP TYPE ... CASCADE took the columns of the run-time tables along: such a column is forgotten, its number is not used again.
    DELETE FROM dbext_private.tracked_column AS k
    WHERE k.table_id = follow_columns.table_id AND k.gone AND NOT k.is_key
        AND k.position NOT IN (SELECT r.number FROM dbext_private.recorded_columns(follow_columns.table_id) AS r);
    PERFORM dbext_private.write_capture(table_id);
END $$;
COMMENT ON FUNCTION dbext_private.follow_columns(integer) IS 'Notes tracked columns that are gone and makes the capture functions fit.';

CREATE FUNCTION dbext_private.follow_labels(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    seen record;
BEGIN
    FOR seen IN
        SELECT k.position, k.column_name, k.labels AS before,
            (SELECT jsonb_object_agg(e.oid, e.enumlabel) FROM pg_enum AS e WHERE e.enumtypid = r.type_id) AS present
        FROM dbext_private.tracked_column AS k JOIN dbext_private.recorded_columns(follow_labels.table_id) AS r ON r.number = k.position
        WHERE k.table_id = follow_labels.table_id
    LOOP
        CONTINUE WHEN seen.present IS NOT DISTINCT FROM seen.before;
        UPDATE dbext_private.tracked_column AS k SET labels = seen.present WHERE k.table_id = follow_labels.table_id AND k.position = seen.position;
        -- In a restored database labels have other OIDs and the same spelling.
        IF EXISTS (SELECT FROM jsonb_each_text(seen.before) AS b WHERE seen.present ->> b.key <> b.value) THEN
            PERFORM dbext_private.note_schema_event(table_id, 'column',
                format('labels of the type of column "%s" were renamed; what was declared with them keeps the old spelling', seen.column_name));
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION dbext_private.follow_labels(integer) IS 'Marks a table when a label of an enum column changed its spelling: predicates and keys are kept as text.';

CREATE FUNCTION dbext_private.event_trigger_states() RETURNS TABLE (name text, state "char")
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT n.name, coalesce(e.evtenabled, 'D') FROM (VALUES ('command'), ('drop'), ('rewrite')) AS n (name)
    LEFT JOIN pg_event_trigger AS e ON e.evtfoid = to_regproc('dbext_private.follow_' || n.name) AND e.evtname = 'dbext_follow_' || n.name
$$;
COMMENT ON FUNCTION dbext_private.event_trigger_states() IS 'Our event triggers and whether they fire (A: always, in replica sessions, too).';

CREATE FUNCTION dbext_private.follow_guards(table_id integer, located oid) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reason text := (SELECT u.reason FROM dbext_private.untrackable(located) AS u);
    needed smallint[];
    allowed smallint[];
BEGIN
    PERFORM dbext_private.note_schema_event(follow_guards.table_id, 'trigger', format('the trigger that captures %s is missing, disabled or not enabled always%s',
        upper(regexp_replace(m.event, '^row', '')) || CASE WHEN m.event LIKE 'row%' THEN ' of rows' ELSE '' END, CASE WHEN m.relation <> located THEN format(' on partition %s', m.relation::regclass) ELSE '' END))
    FROM dbext_private.triggers_missing(follow_guards.table_id, located) AS m;
    IF dbext_private.fed_by_subscription(located) AND NOT (SELECT t.row_triggers FROM dbext_private.tracked_table AS t WHERE t.table_id = follow_guards.table_id) THEN
        PERFORM dbext_private.note_schema_event(table_id, 'trigger',
            'logical replication writes to the table now, which fires no statement triggers; dp_track captures row by row');
    END IF;
    IF EXISTS (SELECT FROM dbext_private.event_trigger_states() AS e WHERE e.state <> 'A') THEN
        PERFORM dbext_private.note_schema_event(table_id, 'event trigger',
            'an event trigger of dbext is missing or disabled: DDL is noticed by the next seal, and rewritten values are not');
    END IF;
    IF reason IS NOT NULL THEN
        PERFORM dbext_private.note_schema_event(table_id, 'table', 'triggers no longer see every change of the table: ' || reason);
    END IF;
    SELECT coalesce(array_agg(k.attribute_number) FILTER (WHERE NOT k.is_unit), array_agg(k.attribute_number)), array_agg(k.attribute_number) INTO needed, allowed
    FROM dbext_private.tracked_column AS k WHERE k.table_id = follow_guards.table_id AND k.is_key;
    IF dbext_private.unit_index(located, needed, allowed) IS NULL THEN
        PERFORM dbext_private.note_schema_event(table_id, 'unit', 'no unique index enforces the privacy unit any more');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.follow_guards(integer, oid) IS 'Marks a table whose triggers, kind or unique key no longer guarantee that capture is whole.';

CREATE FUNCTION dbext_private.schema_facts(table_id integer) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    log_id oid := to_regclass(format('dbext_private.log_%s', table_id));
    relation_id oid;
    tree oid[];
    logs oid[];
    facts text[];
BEGIN
    SELECT t.relation, ARRAY[ROW(t.relation, t.schema_name, t.table_name)::text,
        (SELECT string_agg(k::text, '' ORDER BY k.position) FROM dbext_private.tracked_column AS k WHERE k.table_id = t.table_id)]
    INTO relation_id, facts FROM dbext_private.tracked_table AS t WHERE t.table_id = schema_facts.table_id;
    tree := ARRAY(SELECT p.relation FROM dbext_private.partition_tree(relation_id) AS p);
    logs := ARRAY(SELECT l.relation FROM dbext_private.log_relations(table_id) AS l);
    facts := facts || ARRAY[
        (SELECT string_agg(ROW(c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relispartition, CASE WHEN c.oid = ANY (logs) THEN c.relacl END)::text, '' ORDER BY c.oid)
            FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = ANY (tree || logs)),
        (SELECT string_agg(p::text, '' ORDER BY p.relation) FROM dbext_private.tracked_partition AS p WHERE p.table_id = schema_facts.table_id),
        (SELECT string_agg(ROW(a.attrelid, a.attnum, a.attname, a.atttypid, a.attcollation, a.attnotnull, a.attisdropped, y.typname, s.nspname)::text, ''
                ORDER BY a.attrelid, a.attnum)
            FROM pg_attribute AS a LEFT JOIN pg_type AS y ON y.oid = a.atttypid LEFT JOIN pg_namespace AS s ON s.oid = y.typnamespace
            WHERE a.attrelid IN (relation_id, log_id) AND a.attnum > 0),
        (SELECT string_agg(ROW(e.oid, e.enumlabel)::text, '' ORDER BY e.oid) FROM pg_enum AS e
            WHERE e.enumtypid IN (SELECT a.atttypid FROM pg_attribute AS a WHERE a.attrelid = log_id)),
        (SELECT string_agg(ROW(g.tgrelid, g.tgfoid, g.tgenabled)::text, '' ORDER BY g.oid) FROM pg_trigger AS g WHERE g.tgrelid = ANY (tree) AND NOT g.tgisinternal),
        (SELECT string_agg(ROW(i.indexrelid, i.indisunique, i.indimmediate, i.indisvalid, i.indisready, i.indislive, i.indisprimary, i.indnkeyatts,
                i.indkey, i.indcollation, i.indclass, i.indpred IS NULL, i.indexprs IS NULL)::text, '' ORDER BY i.indexrelid)
            FROM pg_index AS i WHERE i.indrelid = relation_id),
        (SELECT string_agg(p.prosrc, '' ORDER BY p.proname)
            FROM unnest(ARRAY['insert', 'update', 'delete', 'rowinsert', 'rowupdate', 'rowdelete', 'truncate']) AS e JOIN pg_proc AS p ON p.proname = format('capture_%s_%s', e, table_id)
            WHERE p.pronamespace = 'dbext_private'::regnamespace),
        (SELECT u.reason FROM dbext_private.untrackable(relation_id) AS u), dbext_private.fed_by_subscription(relation_id)::text,
        (SELECT string_agg(e::text, '' ORDER BY e.name) FROM dbext_private.event_trigger_states() AS e)];
    RETURN encode(sha256(convert_to(facts::text, getdatabaseencoding())), 'hex');
END $$;
COMMENT ON FUNCTION dbext_private.schema_facts(integer) IS
    'One hash of all that following the schema depends on. While it stays the same there is nothing to follow, and a seal costs one look.';

CREATE FUNCTION dbext_private.follow_untracked(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.follow_names(t.table_id, c.oid) FROM dbext_private.tracked_table AS t JOIN pg_class AS c ON c.oid = t.relation
    WHERE t.table_id = follow_untracked.table_id;
    IF NOT FOUND THEN
        UPDATE dbext_private.tracked_table AS t SET relation = 0 WHERE t.table_id = follow_untracked.table_id AND t.relation <> 0;
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.follow_untracked(integer) IS
    'Keeps the names of a table that is not tracked at present, so that dp_track knows it again whatever it is called by then.';

CREATE FUNCTION dbext_private.follow_schema(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
    known record;
    located oid;
BEGIN
    SELECT t.tracked, t.schema_facts INTO known FROM dbext_private.tracked_table AS t WHERE t.table_id = follow_schema.table_id;
    IF NOT known.tracked THEN
        PERFORM dbext_private.follow_untracked(table_id);
        RETURN;
    ELSIF known.schema_facts = 'in work' THEN
        RETURN;
    ELSIF known.schema_facts = dbext_private.schema_facts(table_id) THEN
        RETURN;
    END IF;
    -- Following a partition takes DDL of our own, which comes here again.
    UPDATE dbext_private.tracked_table AS t SET schema_facts = 'in work' WHERE t.table_id = follow_schema.table_id;
    located := dbext_private.locate(table_id);
    IF located IS NULL THEN
        PERFORM dbext_private.note_schema_event(table_id, 'table', 'the table was dropped');
        UPDATE dbext_private.tracked_table AS t SET tracked = false, relation = 0 WHERE t.table_id = follow_schema.table_id;
        RETURN;
    END IF;
    PERFORM dbext_private.take_back_rights(table_id);
    PERFORM dbext_private.follow_segments(table_id);
    PERFORM dbext_private.follow_names(table_id, located);
    PERFORM dbext_private.follow_columns(table_id);
    PERFORM dbext_private.follow_labels(table_id);
    PERFORM dbext_private.follow_partitions(table_id, located);
    PERFORM dbext_private.follow_guards(table_id, located);
    UPDATE dbext_private.tracked_table AS t SET schema_facts = dbext_private.schema_facts(t.table_id) WHERE t.table_id = follow_schema.table_id;
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
        EXCEPTION WHEN serialization_failure OR deadlock_detected OR lock_not_available THEN
            -- Nothing is wrong but the moment. Committed unfollowed, the command would have every later statement of the writers fail.
            RAISE;
        WHEN OTHERS THEN
            RAISE WARNING 'dbext could not follow this change of a tracked table (SQLSTATE %)', SQLSTATE;
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION dbext_private.follow_quietly(integer[]) IS
    'follow_schema for event triggers: its own errors never stop the command, unless the same command can do better when it is run again.';

CREATE FUNCTION dbext_private.concerns(class_id oid, object_id oid, table_id integer, relation oid) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CASE class_id
        WHEN 'pg_class'::regclass THEN
            RETURN object_id = relation OR pg_partition_root(object_id) = relation
                OR EXISTS (SELECT FROM dbext_private.tracked_partition AS p WHERE (p.table_id, p.relation) = (concerns.table_id, concerns.object_id));
        WHEN 'pg_trigger'::regclass THEN
            RETURN EXISTS (SELECT FROM pg_trigger AS g WHERE g.oid = object_id AND relation IN (g.tgrelid, pg_partition_root(g.tgrelid)));
        ELSE
            RETURN EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation AND c.relnamespace = object_id AND class_id = 'pg_namespace'::regclass)
                OR EXISTS (
                    SELECT FROM dbext_private.recorded_columns(concerns.table_id) AS r JOIN pg_type AS y ON y.oid = r.type_id
                    LEFT JOIN pg_depend AS d ON d.classid = 'pg_type'::regclass AND d.objid = y.oid AND d.deptype = 'e'
                    WHERE (class_id, object_id) IN (('pg_type'::regclass, y.oid), ('pg_namespace'::regclass, y.typnamespace), (d.refclassid, d.refobjid)));
    END CASE;
END $$;
COMMENT ON FUNCTION dbext_private.concerns(oid, oid, integer, oid) IS
    'Whether a command on an object (relation, trigger, type, schema, extension) may concern a tracked table: others'' DDL is nobody''s business here.';

CREATE FUNCTION dbext_private.follow_command() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tables integer[];
BEGIN
    BEGIN
        SELECT array_agg(DISTINCT t.table_id ORDER BY t.table_id) INTO tables FROM pg_event_trigger_ddl_commands() AS c
        JOIN dbext_private.tracked_table AS t ON dbext_private.concerns(c.classid, c.objid, t.table_id, t.relation);
        IF tables IS NOT NULL AND dbext_private.is_home() THEN
            PERFORM dbext_private.follow_quietly(tables);
        END IF;
    EXCEPTION WHEN serialization_failure OR deadlock_detected OR lock_not_available THEN
        RAISE;
    WHEN OTHERS THEN
        RAISE WARNING 'dbext could not follow this command (SQLSTATE %)', SQLSTATE;
    END;
    IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() AS c WHERE c.command_tag = 'ALTER TABLE') THEN
        PERFORM dbext_private.refuse_foreign_types();
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.follow_command() IS 'Runs after DDL that may concern tracked tables; a database being restored is left alone.';

CREATE FUNCTION dbext_private.follow_drop() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tables integer[];
    captured integer[];
    lost record;
BEGIN
    SELECT array_agg(DISTINCT t.table_id), array_agg(t.table_id) FILTER (WHERE t.tracked) INTO tables, captured
    FROM pg_event_trigger_dropped_objects() AS o JOIN dbext_private.tracked_table AS t
        ON o.classid = 'pg_class'::regclass AND o.objid = t.relation OR o.address_names[1:2] = ARRAY[t.schema_name, t.table_name]
        OR EXISTS (SELECT FROM dbext_private.tracked_partition AS p WHERE p.table_id = t.table_id AND (o.classid = 'pg_class'::regclass AND o.objid = p.relation
            OR o.address_names[1:2] = ARRAY[p.schema_name, p.table_name]));
    IF tables IS NOT NULL AND dbext_private.is_home() THEN
        PERFORM dbext_private.follow_quietly(tables);
        FOR lost IN SELECT t.schema_name, t.table_name FROM dbext_private.tracked_table AS t WHERE t.table_id = ANY (captured) AND t.relation = 0 LOOP
            RAISE NOTICE 'table %.% was tracked: what was published about it stays, and its releases go on, marked capture_gap',
                quote_ident(lost.schema_name), quote_ident(lost.table_name)
                USING HINT = 'End them with dp_drop_release, or make the table again and call dp_track.';
        END LOOP;
    END IF;
EXCEPTION WHEN serialization_failure OR deadlock_detected OR lock_not_available THEN
    RAISE;
WHEN OTHERS THEN
    RAISE WARNING 'dbext could not follow this command (SQLSTATE %)', SQLSTATE;
END $$;
COMMENT ON FUNCTION dbext_private.follow_drop() IS 'Runs after anything was dropped.';

CREATE FUNCTION dbext_private.altered_columns(table_id integer) RETURNS TABLE (name text, number integer, is_key boolean, same_type boolean, surely boolean)
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- ALTER TABLE writes the catalog rows of an altered column and of all after it anew, under one command number per altered column: where
    -- the number changes, a column surely was altered; the others may have been, before one that stands to the left of them.
    RETURN QUERY SELECT c.attname::text, c.position, coalesce(c.is_key, false), r.type_id = dbext_private.base_type(c.atttypid),
        c.command IS DISTINCT FROM c.previous
    FROM (
        SELECT a.attname, a.attnum, a.atttypid, k.position, k.is_key, x.command, lag(x.command) OVER (ORDER BY a.attnum) AS previous
        FROM dbext_private.tracked_table AS t JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum > 0
        LEFT JOIN dbext_private.tracked_column AS k ON k.table_id = t.table_id AND k.attribute_number = a.attnum AND NOT k.gone
        CROSS JOIN LATERAL (SELECT CASE WHEN age(a.xmin) <= 0 THEN a.cmin::text END AS command) AS x
        WHERE t.table_id = altered_columns.table_id
    ) AS c LEFT JOIN dbext_private.recorded_columns(altered_columns.table_id) AS r ON r.number = c.position
    WHERE c.command IS NOT NULL ORDER BY c.attnum;
END $$;
COMMENT ON FUNCTION dbext_private.altered_columns(integer) IS
    'Columns that this transaction altered (surely) or may have altered, in order; number is NULL for one that is not tracked.';

CREATE FUNCTION dbext_private.note_rewritten(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first record;
    unit record;
BEGIN
    SELECT a.* INTO first FROM dbext_private.altered_columns(note_rewritten.table_id) AS a LIMIT 1;
    SELECT a.* INTO unit FROM dbext_private.altered_columns(note_rewritten.table_id) AS a WHERE a.is_key AND a.surely AND a.same_type LIMIT 1;
    IF unit.number IS NOT NULL THEN
        UPDATE dbext_private.tracked_column AS k SET gone = true WHERE (k.table_id, k.position) = (note_rewritten.table_id, unit.number);
        PERFORM dbext_private.note_schema_event(table_id, 'column',
            format('the values of column "%s" were rewritten by ALTER TABLE; it identified entries, so nothing is captured any more', unit.name));
    ELSIF first.number IS NOT NULL AND NOT first.same_type THEN
        RETURN;  -- follow_columns says so of a column of another type
    ELSIF first.number IS NOT NULL THEN
        PERFORM dbext_private.note_schema_event(table_id, 'column',
            format('the values of column "%s" were rewritten by ALTER TABLE, which no trigger sees; dp_rebase records them', first.name));
    ELSIF EXISTS (SELECT FROM dbext_private.altered_columns(note_rewritten.table_id) AS a WHERE a.number IS NOT NULL) THEN
        PERFORM dbext_private.note_schema_event(table_id, 'column',
            format('ALTER TABLE rewrote values of column "%s" or of columns after it, which no trigger sees; dp_rebase records them', first.name));
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.note_rewritten(integer) IS 'Marks a table whose rows ALTER TABLE is about to rewrite, if a tracked column may be among what was altered.';

CREATE FUNCTION dbext_private.follow_rewrite() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
    table_number integer;
BEGIN
    -- Reasons 2 and 4: other values, by a default or generation expression, or by ALTER COLUMN ... TYPE ... USING.
    SELECT t.table_id INTO table_number FROM dbext_private.tracked_table AS t
    WHERE t.tracked AND pg_event_trigger_table_rewrite_oid() IN (SELECT p.relation FROM dbext_private.partition_tree(t.relation) AS p) AND pg_event_trigger_table_rewrite_reason() & 6 <> 0;
    IF FOUND AND dbext_private.is_home() THEN
        PERFORM dbext_private.note_rewritten(table_number);
    END IF;
EXCEPTION WHEN serialization_failure OR deadlock_detected OR lock_not_available THEN
    RAISE;
WHEN OTHERS THEN
    RAISE WARNING 'dbext could not follow this command (SQLSTATE %)', SQLSTATE;
END $$;
COMMENT ON FUNCTION dbext_private.follow_rewrite() IS 'Runs before ALTER TABLE rewrites the rows of a table.';

CREATE EVENT TRIGGER dbext_follow_command ON ddl_command_end
    WHEN TAG IN ('ALTER TABLE', 'ALTER TRIGGER', 'ALTER SCHEMA', 'ALTER EXTENSION', 'ALTER TYPE',
        'CREATE TABLE', 'CREATE FOREIGN TABLE', 'CREATE SCHEMA')
    EXECUTE FUNCTION dbext_private.follow_command();
COMMENT ON EVENT TRIGGER dbext_follow_command IS 'Keeps capture in step with renamed, dropped and retyped columns and tables.';
CREATE EVENT TRIGGER dbext_follow_drop ON sql_drop EXECUTE FUNCTION dbext_private.follow_drop();
COMMENT ON EVENT TRIGGER dbext_follow_drop IS 'Marks tracked tables that were dropped or lost a capture trigger.';
CREATE EVENT TRIGGER dbext_follow_rewrite ON table_rewrite EXECUTE FUNCTION dbext_private.follow_rewrite();
COMMENT ON EVENT TRIGGER dbext_follow_rewrite IS 'Marks tracked tables whose values are rewritten unseen by triggers.';
ALTER EVENT TRIGGER dbext_follow_command ENABLE ALWAYS;
ALTER EVENT TRIGGER dbext_follow_drop ENABLE ALWAYS;
ALTER EVENT TRIGGER dbext_follow_rewrite ENABLE ALWAYS;

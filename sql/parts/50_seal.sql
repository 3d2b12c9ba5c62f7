-- Sealing: where and when it may happen. What a seal does is in dbext/service/seal.py.

CREATE FUNCTION dbext_private.refuse_seal_here() RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pg_is_in_recovery() THEN
        PERFORM dbext_private.refuse('a standby cannot seal: its snapshots do not list the transactions in progress', NULL, 'DP031');
    ELSIF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM dbext_private.refuse('a seal runs in a READ COMMITTED transaction: it must see what was committed before it had its lock', NULL, 'DP031');
    ELSIF pg_current_xact_id_if_assigned() IS NOT NULL THEN
        PERFORM dbext_private.refuse('a seal must be the first thing its transaction does: mutations of this transaction would belong to no tick',
            'Commit first, or CALL dp_publish() outside a transaction block.', 'DP031');
    ELSIF NOT dbext_private.is_home() THEN
        PERFORM dbext_private.refuse('this database was restored, upgraded or promoted since it was last sealed',
            'A superuser accepts that with SELECT dp_confirm_upgrade().', 'DP031');
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.refuse_seal_here() IS 'Refuses transactions and clusters in which a seal could lose or double mutations.';

CREATE FUNCTION dbext_private.seal_table(table_id integer) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off
AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    PERFORM dbext_private.refuse_seal_here();
    RETURN dbext_private.call('seal', jsonb_build_object('table_id', table_id));
END $$;
COMMENT ON FUNCTION dbext_private.seal_table(integer) IS
    'Closes the ticks of a table that have ended: {sealed, tick, more}. First in its own transaction; call again, each time in a new one, while more.';

CREATE FUNCTION dbext_private.execute_pass(
    statement text, previous_snapshot pg_snapshot, snapshot pg_snapshot, previous_boundary timestamptz, boundary timestamptz, ends timestamptz[],
    previous_tick bigint, last_tick bigint, seal_no bigint, first_tick bigint, table_id integer, floor_number bigint, truncation bigint
) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
-- One pass costs as much as there are new mutations, but statistics know little of rows that just came. So the log is read through its
-- indexes, and joins of intermediate results are hashed, never looped (look-ups of entries are lateral subqueries, which this leaves alone).
SET enable_seqscan = off SET enable_nestloop = off SET work_mem = '32MB' SET jit = off
AS $$
DECLARE
    result jsonb;
BEGIN
    EXECUTE statement INTO result USING previous_snapshot, snapshot, previous_boundary, boundary, ends, previous_tick, last_tick, seal_no, first_tick,
        table_id, floor_number, truncation;
    RETURN result;
END $$;
COMMENT ON FUNCTION dbext_private.execute_pass(text, pg_snapshot, pg_snapshot, timestamptz, timestamptz, timestamptz[], bigint, bigint, bigint, bigint,
    integer, bigint, bigint) IS
    'Runs a statement that the package composed, its parameters typed and known to the planner. It gives nobody more than his own rights.';

CREATE FUNCTION dbext_private.refuse_changing(table_id integer) RETURNS void
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.refuse(format('another transaction is changing table %I.%I', t.schema_name, t.table_name), 'Try again when it has ended.', 'DP031')
    FROM dbext_private.tracked_table AS t WHERE t.table_id = refuse_changing.table_id;
END $$;
COMMENT ON FUNCTION dbext_private.refuse_changing(integer) IS 'Refuses to wait any longer for DDL of somebody else.';

CREATE FUNCTION dbext_private.follow_briefly(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    PERFORM dbext_private.follow_schema(table_id);
    -- Entries of a tick sealed before any constraint existed obey none. This depends on when constraints were declared, not on any row.
    UPDATE dbext_private.tracked_table AS t SET sealed_unconstrained = true
    WHERE t.table_id = follow_briefly.table_id AND NOT t.sealed_unconstrained
        AND NOT EXISTS (SELECT FROM dbext_private.entry_type AS e WHERE e.table_id = t.table_id);
EXCEPTION WHEN lock_not_available THEN
    PERFORM dbext_private.refuse_changing(table_id);
END $$;
COMMENT ON FUNCTION dbext_private.follow_briefly(integer) IS
    'What a seal looks at again: whether capture is whole, and whether constraints were declared. Whoever leaves DDL uncommitted does not have seals wait for ever.';

CREATE FUNCTION dbext_private.summarise(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    indexed record;
BEGIN
    FOR indexed IN
        SELECT i.indrelid AS relation, i.indexrelid AS index FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS m ON m.oid = c.relam
        WHERE m.amname = 'brin' AND i.indrelid IN (SELECT l.relation FROM dbext_private.log_relations(table_id) AS l
            UNION ALL SELECT to_regclass(format('dbext_private.change_%s', table_id)))
    LOOP
        BEGIN
            -- Vacuum holds this lock, and summarises too.
            EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE NOWAIT', indexed.relation::regclass);
            PERFORM brin_summarize_new_values(indexed.index);
            -- A summary of the range that still fills would be widened by whoever writes, row by row, at a quarter of what a record costs him.
            PERFORM brin_desummarize_range(indexed.index, s.blocks - s.blocks % 32)
            FROM (SELECT pg_relation_size(indexed.relation) / current_setting('block_size')::bigint AS blocks) AS s
            WHERE s.blocks % 32 > 0 AND indexed.relation = (SELECT to_regclass(dbext_private.segment_name(t.table_id, t.segment))
                FROM dbext_private.tracked_table AS t WHERE t.table_id = summarise.table_id);
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION dbext_private.summarise(integer) IS
    'Brings the block-range indexes up to date, so that seals and sums read what is new and little else. Without it they are slower, not wrong.';

CREATE FUNCTION dbext_private.lock_log(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    -- No writer is between its transaction number and its commit while this lock is held. While it is waited for, others wait behind it.
    IF EXISTS (SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database()
            WHERE l.locktype = 'relation' AND l.pid IS NULL AND l.mode = 'RowExclusiveLock'
                AND l.relation IN (SELECT r.relation FROM dbext_private.log_relations(table_id) AS r)) THEN
        PERFORM dbext_private.refuse(format('a prepared transaction has written to table %I.%I', t.schema_name, t.table_name),
            'COMMIT PREPARED or ROLLBACK PREPARED it first: TABLE pg_prepared_xacts.', 'DP031')
        FROM dbext_private.tracked_table AS t WHERE t.table_id = lock_log.table_id;
    END IF;
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', dbext_private.segment_name(table_id, NULL));
EXCEPTION WHEN lock_not_available THEN
    PERFORM dbext_private.refuse_changing(table_id);
END $$;
COMMENT ON FUNCTION dbext_private.lock_log(integer) IS
    'Keeps everybody from writing to a changelog. It gives up rather than have all writers wait for one transaction that does not end.';

CREATE FUNCTION dbext_private.rebase_snapshots(table_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    head dbext_private.seal_head;
    columns text;
    present pg_snapshot;
BEGIN
    PERFORM dbext_private.lock_log(table_id);
    SELECT h.* INTO head FROM dbext_private.seal_head AS h WHERE h.table_id = rebase_snapshots.table_id FOR UPDATE;
    SELECT string_agg(quote_ident(a.attname), ', ') INTO columns FROM pg_attribute AS a
    WHERE a.attrelid = format('dbext_private.log_%s', table_id)::regclass AND a.attnum > 0 AND a.attname <> 'xid';
    EXECUTE format('INSERT INTO dbext_private.deferred_%s (%s) SELECT %2$s FROM dbext_private.log_%1$s AS l '
        'WHERE NOT (pg_visible_in_snapshot(l.xid, $1) AND l.mutated_at <= $2) ON CONFLICT DO NOTHING', table_id, columns) USING head.snapshot, head.boundary;
    present := pg_current_snapshot();
    EXECUTE format('UPDATE dbext_private.log_%s SET xid = ''3'' WHERE xid >= pg_snapshot_xmin($1)', table_id) USING present;
    -- Every row in the log now counts as seen and within the boundary, or waits in deferred_N; later rows come with later numbers.
    UPDATE dbext_private.seal_head AS h SET snapshot = present WHERE h.table_id = rebase_snapshots.table_id;
END $$;
COMMENT ON FUNCTION dbext_private.rebase_snapshots(integer) IS
    'Makes a log independent of the transaction numbers of another cluster: rows not sealed yet wait in deferred_N, the others count as long past.';

CREATE FUNCTION dp_confirm_upgrade() RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
    table_number integer;
BEGIN
    IF NOT (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user) THEN
        PERFORM dbext_private.refuse('only a superuser may accept a restored, upgraded or promoted database', NULL, 'DP005');
    ELSIF pg_is_in_recovery() OR current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM dbext_private.refuse('run this on the primary, in a READ COMMITTED transaction', NULL, 'DP031');
    END IF;
    FOR table_number IN SELECT h.table_id FROM dbext_private.seal_head AS h ORDER BY h.table_id LOOP
        PERFORM dbext_private.rebase_snapshots(table_number);
    END LOOP;
    -- A dump holds the reservations of declarations that were not committed, and not the transactions that they were waiting for.
    INSERT INTO dbext_private.ledger (budget_id, table_id, release_id, kind, charges, epsilon, recorded_by)
    SELECT l.budget_id, l.table_id, l.release_id, 'return', '[]', 0, l.recorded_by FROM dbext_private.ledger AS l
    WHERE l.kind = 'reserve' AND NOT EXISTS (SELECT FROM dbext_private.release AS r WHERE r.release_id = l.release_id)
        AND NOT EXISTS (SELECT FROM dbext_private.open_reservation AS o WHERE o.release_id = l.release_id)
        AND NOT EXISTS (SELECT FROM dbext_private.ledger AS b WHERE b.release_id = l.release_id AND b.kind = 'return');
    -- Transactions of another cluster have numbers that mean others here: who may still write to a segment is looked at anew.
    UPDATE dbext_private.log_segment AS s SET writers = NULL WHERE s.writers IS NOT NULL;
    DELETE FROM dbext_private.cluster_identity;
    PERFORM dbext_private.remember_cluster();
    -- After pg_upgrade roles have their OIDs still; after a dump names alone say who is who.
    UPDATE dbext_private.role_identity AS i SET role_oid = NULL
    WHERE NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = i.role_oid AND r.rolname = i.role_name);
    PERFORM dbext_private.relocate_partitions();
    -- A table that is tracked is known by its triggers; of one that is not, a restore left nothing but the name.
    UPDATE dbext_private.tracked_table AS t SET relation = coalesce((SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE (n.nspname, c.relname) = (t.schema_name, t.table_name) AND c.relkind IN ('r', 'p')), 0)
    WHERE NOT t.tracked AND t.relation <> 0;
    FOR table_number IN SELECT h.table_id FROM dbext_private.seal_head AS h ORDER BY h.table_id LOOP
        PERFORM dbext_private.follow_schema(table_number);
    END LOOP;
    RETURN 'This cluster, database and timeline are accepted; seals go on from here.';
END $$;
COMMENT ON FUNCTION dp_confirm_upgrade() IS
    'Accepts that the database was upgraded, restored or promoted. Budgets and releases must not be older than what was published: see the ledger first.';

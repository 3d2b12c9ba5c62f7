-- The witness: a file of a worker, or the release target, that holds what the ledger was. A database that is put back to an earlier state
-- has forgotten charges, and cannot know it; the witness does.

CREATE TABLE dbext_private.witness (
    only_row           boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    lease              interval,
    vouched_until      timestamptz,
    vouched_for_server timestamptz,
    behind_since       timestamptz
);
COMMENT ON TABLE dbext_private.witness IS 'What witnesses have said of this ledger.';
COMMENT ON COLUMN dbext_private.witness.lease IS 'How long the word of a witness holds; NULL: none is required';
COMMENT ON COLUMN dbext_private.witness.vouched_until IS 'Until when it holds; NULL: no witness has ever seen this ledger';
COMMENT ON COLUMN dbext_private.witness.vouched_for_server IS 'Start of the server that it was said of: whatever puts a database back starts a server';
COMMENT ON COLUMN dbext_private.witness.behind_since IS 'A witness holds charges that this ledger has not; until a superuser accepts it, nothing is drawn';

CREATE TABLE dbext_private.accepted_loss (
    fingerprint text PRIMARY KEY,
    accepted_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
COMMENT ON TABLE dbext_private.accepted_loss IS 'Rows that the ledger has lost and that were charged again.';

DO $$
BEGIN
    PERFORM pg_catalog.pg_extension_config_dump('dbext_private.witness'::pg_catalog.regclass, '');
    PERFORM pg_catalog.pg_extension_config_dump('dbext_private.accepted_loss'::pg_catalog.regclass, '');
END $$;

CREATE FUNCTION dbext_private.fingerprint(entry dbext_private.ledger) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
    SELECT encode(sha256(convert_to(jsonb_build_array(entry.ledger_no, entry.budget_id, entry.table_id, entry.release_id, entry.question_id, entry.kind,
        entry.charges, entry.key_checks, entry.epsilon, entry.recorded_by, entry.recorded_at)::text, 'UTF8')), 'hex')
$$;
COMMENT ON FUNCTION dbext_private.fingerprint(dbext_private.ledger) IS
    'Tells a row of the ledger from any other, also from one of the same number in another history.';

CREATE FUNCTION dbext_private.knows_ledger(head bigint, mark text, rows bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    RETURN EXISTS (SELECT FROM dbext_private.ledger AS l WHERE l.ledger_no = head AND dbext_private.fingerprint(l) = mark)
        AND (SELECT count(*) FROM dbext_private.ledger AS l WHERE l.ledger_no <= head) >= rows;
END $$;
COMMENT ON FUNCTION dbext_private.knows_ledger(bigint, text, bigint) IS
    'Whether the last row that a witness holds is here, and no fewer rows up to it: then the others are here too.';

CREATE FUNCTION dbext_private.unknown_rows(marks text[]) RETURNS text[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    RETURN (SELECT coalesce(array_agg(m.mark), '{}') FROM unnest(marks) AS m (mark)
        WHERE m.mark NOT IN (SELECT dbext_private.fingerprint(l) FROM dbext_private.ledger AS l));
END $$;
COMMENT ON FUNCTION dbext_private.unknown_rows(text[]) IS 'Which of these rows the ledger does not have.';

CREATE FUNCTION dbext_private.accepted_rows(marks text[]) RETURNS text[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    RETURN (SELECT coalesce(array_agg(a.fingerprint), '{}') FROM dbext_private.accepted_loss AS a WHERE a.fingerprint = ANY (marks));
END $$;
COMMENT ON FUNCTION dbext_private.accepted_rows(text[]) IS 'Which of these rows were lost and charged again.';

CREATE FUNCTION dbext_private.rows_to_witness(after bigint, known bigint[]) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO, YMD' AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object('number', l.ledger_no, 'mark', dbext_private.fingerprint(l), 'kind', l.kind,
            'table', jsonb_build_array(t.schema_name, t.table_name), 'release', r.name, 'release_id', l.release_id, 'epsilon', l.epsilon::text,
            'recorded_at', l.recorded_at, 'charges', CASE WHEN l.kind IN ('publish', 'question', 'lost') THEN l.charges ELSE '[]' END,
            'key_checks', CASE WHEN l.kind IN ('publish', 'lost') THEN l.key_checks ELSE '[]' END) ORDER BY l.ledger_no), '[]')
        FROM (SELECT * FROM dbext_private.ledger AS a WHERE a.ledger_no > after AND a.ledger_no <> ALL (known) ORDER BY a.ledger_no LIMIT 2000) AS n
        JOIN dbext_private.ledger AS l USING (ledger_no)
        LEFT JOIN dbext_private.tracked_table AS t ON t.table_id = l.table_id LEFT JOIN dbext_private.release AS r ON r.release_id = l.release_id);
END $$;
COMMENT ON FUNCTION dbext_private.rows_to_witness(bigint, bigint[]) IS
    'Rows of the ledger that a witness does not hold yet, 2000 at a time: enough of each to know it again, and to charge it again.';

CREATE FUNCTION dbext_private.note_behind() RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    INSERT INTO dbext_private.witness (behind_since) VALUES (clock_timestamp())
    ON CONFLICT (only_row) DO UPDATE SET behind_since = coalesce(dbext_private.witness.behind_since, excluded.behind_since);
END $$;
COMMENT ON FUNCTION dbext_private.note_behind() IS 'Stops publication and questions, whoever asks, until a superuser calls dp_confirm_restore.';

CREATE FUNCTION dbext_private.vouch() RETURNS interval
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    INSERT INTO dbext_private.witness (vouched_until, vouched_for_server) VALUES (clock_timestamp(), pg_postmaster_start_time())
    ON CONFLICT (only_row) DO UPDATE
    SET vouched_until = clock_timestamp() + coalesce(dbext_private.witness.lease, '0'), vouched_for_server = excluded.vouched_for_server;
    RETURN (SELECT w.lease FROM dbext_private.witness AS w);
END $$;
COMMENT ON FUNCTION dbext_private.vouch() IS 'A worker says that its witness holds nothing that this ledger has not, and holds all of it; returns how long that is good for.';

CREATE FUNCTION dbext_private.trust(OUT behind boolean, OUT vouched boolean, OUT witnessed boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(bool_or(w.behind_since IS NOT NULL), false),
        coalesce(bool_and(w.lease IS NULL OR coalesce(w.vouched_until > clock_timestamp() AND w.vouched_for_server = pg_postmaster_start_time(), false)), true),
        coalesce(bool_or(w.vouched_until IS NOT NULL), false)
    FROM dbext_private.witness AS w
$$;
COMMENT ON FUNCTION dbext_private.trust() IS 'Whether the ledger is known to be behind, whether a required witness has vouched for it, and whether any ever has.';

CREATE FUNCTION dbext_private.was_witnessed() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    RETURN (SELECT t.witnessed FROM dbext_private.trust() AS t);
END $$;
COMMENT ON FUNCTION dbext_private.was_witnessed() IS 'Whether any witness has ever seen this ledger.';

CREATE FUNCTION dp_require_witness(lease interval) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET intervalstyle = 'postgres' AS $$
BEGIN
    PERFORM dbext_private.require_admin();
    IF lease < '10 seconds' OR lease > '1 day' THEN
        PERFORM dbext_private.refuse('a lease lasts from 10 seconds to one day', NULL, 'DP001');
    END IF;
    INSERT INTO dbext_private.witness AS w (lease) VALUES (dp_require_witness.lease) ON CONFLICT (only_row) DO UPDATE SET lease = excluded.lease;
    RETURN CASE WHEN dp_require_witness.lease IS NULL THEN 'No witness is required.'
        ELSE format('Releases and questions need a worker with a witness (dbext worker --witness or --release-dsn) every %s seconds at least.', extract(epoch FROM dp_require_witness.lease)::bigint) END;
END $$;
COMMENT ON FUNCTION dp_require_witness(interval) IS
    'Draw noise only while a worker''s witness has vouched for the ledger not longer ago than this, and since the server was started; NULL: do not require it.';

CREATE FUNCTION dp_confirm_restore(lost jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('confirm_restore', jsonb_build_object('lost', lost)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_confirm_restore(jsonb) IS
    'Accepts that this ledger has lost the rows given (dbext accept-restore finds them): what had left is charged again, then publication goes on.';

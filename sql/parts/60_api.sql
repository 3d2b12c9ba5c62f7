-- What users call. Each function hands its arguments to one Python entry (35_doors.sql); dp_track, dp_untrack and
-- dp_confirm_upgrade are in 40 and 50. Definer functions know their caller through dbext_private.caller().

CREATE TYPE dbext.candidate AS (
    mechanism text, noise text, mean_std_error double precision, worst_std_error double precision,
    epsilon_by_type jsonb, chosen boolean, reason text, kind text, horizon bigint, notes text, age_dependent jsonb,
    stream text, share double precision, adds_in text, stored_numbers bigint);
COMMENT ON TYPE dbext.candidate IS 'One way to make a release: predicted standard errors, and the lifetime loss of an entry of each type.';
COMMENT ON COLUMN dbext.candidate.mechanism IS 'How nodes are drawn and answers put together';
COMMENT ON COLUMN dbext.candidate.noise IS 'Law and parameter of the noise';
COMMENT ON COLUMN dbext.candidate.mean_std_error IS 'Root of the mean squared error over the periods, in one cell';
COMMENT ON COLUMN dbext.candidate.worst_std_error IS 'The largest standard error of a period';
COMMENT ON COLUMN dbext.candidate.epsilon_by_type IS 'Lifetime loss of the worst entry of each type';
COMMENT ON COLUMN dbext.candidate.chosen IS 'Whether this one is taken';
COMMENT ON COLUMN dbext.candidate.reason IS 'Why';
COMMENT ON COLUMN dbext.candidate.kind IS 'disjoint, sliding, running_total or once';
COMMENT ON COLUMN dbext.candidate.horizon IS 'Periods in all, or in each epoch; NULL: endless';
COMMENT ON COLUMN dbext.candidate.notes IS 'How the declaration was read where SQL leaves room';
COMMENT ON COLUMN dbext.candidate.age_dependent IS
    'Of the plan of a declared release whose table has a model: what it tells about the present status in each column, as in dbext.age_risk';
COMMENT ON COLUMN dbext.candidate.stream IS 'The statistic that is noised: a count, a sum, a sum of squares';
COMMENT ON COLUMN dbext.candidate.adds_in IS 'In what its price adds up with those of others: epsilon, or rho';
COMMENT ON COLUMN dbext.candidate.share IS 'Part of the release''s budget that this statistic gets';
COMMENT ON COLUMN dbext.candidate.stored_numbers IS 'Noisy numbers kept when the horizon, or one epoch, is over, for all groups; NULL: without end';

CREATE TYPE dbext.window_answer AS (
    value double precision, std_error double precision, lower_95 double precision, upper_95 double precision,
    window_start timestamptz, window_end timestamptz, epsilon numeric, remembered boolean);
COMMENT ON TYPE dbext.window_answer IS
    'A noisy answer, the window it is for (NULL start: since the beginning), what it cost, and whether it had been given before.';
COMMENT ON COLUMN dbext.window_answer.value IS 'The noisy count';
COMMENT ON COLUMN dbext.window_answer.std_error IS 'Standard error of its noise';
COMMENT ON COLUMN dbext.window_answer.lower_95 IS 'Lower end of the 95% interval for the noise';
COMMENT ON COLUMN dbext.window_answer.upper_95 IS 'Upper end';
COMMENT ON COLUMN dbext.window_answer.window_start IS 'Start of the window, exclusive, snapped to a tick; NULL: since the beginning';
COMMENT ON COLUMN dbext.window_answer.window_end IS 'End of the window, inclusive, snapped to a tick';
COMMENT ON COLUMN dbext.window_answer.epsilon IS 'What the answer was charged';
COMMENT ON COLUMN dbext.window_answer.remembered IS 'Whether it was stored already, so that this call was free';

CREATE FUNCTION dp_add_constraint(
    tbl regclass, name text, applies_to text DEFAULT NULL, max_mutations integer DEFAULT NULL,
    active_within interval DEFAULT NULL, at_limit text DEFAULT 'stay'
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET intervalstyle = 'postgres' AS $$
BEGIN
    RETURN dbext_private.call('add_constraint', jsonb_build_object(
        'tbl', tbl::oid::bigint, 'name', name, 'applies_to', applies_to, 'max_mutations', max_mutations,
        'active_within', active_within::text, 'at_limit', at_limit)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_add_constraint(regclass, text, text, integer, interval, text) IS
    'State how entries of one type may change: at most max_mutations times, or only within active_within of their first appearance.';

CREATE FUNCTION dp_alter_constraint(
    tbl regclass, name text, max_mutations integer DEFAULT NULL, active_within interval DEFAULT NULL, at_limit text DEFAULT 'stay'
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET intervalstyle = 'postgres' AS $$
BEGIN
    RETURN dbext_private.call('alter_constraint', jsonb_build_object(
        'tbl', tbl::oid::bigint, 'name', name, 'max_mutations', max_mutations,
        'active_within', active_within::text, 'at_limit', at_limit)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_alter_constraint(regclass, text, integer, interval, text) IS
    'Replace the limits of an entry type. Tightening is free; loosening must leave the whole ledger within the budget.';

CREATE FUNCTION dp_set_budget(
    tbl regclass, epsilon numeric, delta numeric DEFAULT NULL, budget text DEFAULT NULL, key_delta numeric DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('set_budget', jsonb_build_object(
        'tbl', tbl::oid::bigint, 'epsilon', epsilon::text, 'delta', delta::text, 'budget', budget, 'key_delta', key_delta::text)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_set_budget(regclass, numeric, numeric, text, numeric) IS
    'Set the (epsilon, delta) that no entry''s lifetime loss may exceed, and the part of delta for group keys taken from the data; a budget name joins a budget that several tables share.';

CREATE FUNCTION dbext_private.release_arguments(
    name text, declaration text, every interval, measure text, epsilon numeric, groups text, start text, horizon integer, max_error numeric,
    band text, levels interval[], ranges interval[], at_horizon text, model text, roster text, publish_reports boolean, key_delta numeric, noise text,
    max_errors jsonb
) RETURNS jsonb
LANGUAGE sql STABLE
RETURN pg_catalog.jsonb_build_object(
    'name', name, 'declaration', declaration, 'every', dbext_private.span(every), 'measure', measure, 'epsilon', epsilon::text,
    'groups', groups, 'start', start, 'horizon', horizon, 'max_error', max_error::text, 'band', band,
    'levels', dbext_private.spans(levels), 'ranges', dbext_private.spans(ranges),
    'at_horizon', at_horizon,
    'model', model, 'roster', roster, 'publish_reports', publish_reports, 'key_delta', key_delta::text, 'noise', noise, 'max_errors', max_errors::text);
COMMENT ON FUNCTION dbext_private.release_arguments IS
    'The arguments of a declaration, as Python takes them.';

CREATE FUNCTION dp_create_release(
    name text, declaration text, every interval DEFAULT NULL, measure text DEFAULT NULL, epsilon numeric DEFAULT NULL,
    groups text DEFAULT NULL, start text DEFAULT NULL, horizon integer DEFAULT NULL, max_error numeric DEFAULT NULL,
    band text DEFAULT NULL, levels interval[] DEFAULT NULL, ranges interval[] DEFAULT NULL,
    at_horizon text DEFAULT NULL,
    model text DEFAULT 'central', roster text DEFAULT NULL, publish_reports boolean DEFAULT false,
    key_delta numeric DEFAULT NULL, noise text DEFAULT NULL, max_errors jsonb DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('create_release', dbext_private.release_arguments(
        name, declaration, every, measure, epsilon, groups, start, horizon, max_error, band, levels, ranges, at_horizon, model, roster, publish_reports, key_delta, noise, max_errors)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_create_release IS
    'Declare a release: plans it, reserves its lifetime loss and creates its table in schema dp_release. start is read in the table''s time zone.';

CREATE FUNCTION dp_plan_release(
    name text, declaration text, every interval DEFAULT NULL, measure text DEFAULT NULL, epsilon numeric DEFAULT NULL,
    groups text DEFAULT NULL, start text DEFAULT NULL, horizon integer DEFAULT NULL, max_error numeric DEFAULT NULL,
    band text DEFAULT NULL, levels interval[] DEFAULT NULL, ranges interval[] DEFAULT NULL,
    at_horizon text DEFAULT NULL,
    model text DEFAULT 'central', roster text DEFAULT NULL, publish_reports boolean DEFAULT false,
    key_delta numeric DEFAULT NULL, noise text DEFAULT NULL, max_errors jsonb DEFAULT NULL
) RETURNS SETOF dbext.candidate
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext.candidate, dbext_private.call('plan_release',
        dbext_private.release_arguments(
            name, declaration, every, measure, epsilon, groups, start, horizon, max_error, band, levels, ranges, at_horizon, model, roster, publish_reports, key_delta, noise, max_errors)));
END $$;
COMMENT ON FUNCTION dp_plan_release IS
    'What dp_create_release with the same arguments would choose from, with predicted errors and prices. Spends nothing, reads no data.';

CREATE FUNCTION dp_explain_release(name text) RETURNS SETOF dbext.candidate
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext.candidate,
        dbext_private.call('explain_release', jsonb_build_object('name', name)));
END $$;
COMMENT ON FUNCTION dp_explain_release(text) IS
    'The plan of a declared release and the candidates it was chosen from, with predicted errors and prices. Spends nothing, reads no data.';

CREATE FUNCTION dp_drop_release(name text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('drop_release', jsonb_build_object('name', name)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_drop_release(text) IS
    'Stop a release and drop its table. What was published stays charged; what was only reserved returns to the budget.';

CREATE FUNCTION dbext_private.record_public_column(tbl regclass, column_name text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('mark_public', jsonb_build_object('tbl', tbl::oid::bigint, 'column_name', column_name)) #>> '{}';
END $$;
COMMENT ON FUNCTION dbext_private.record_public_column(regclass, text) IS 'The definer half of dp_mark_public: checks the column and notes the mark.';

CREATE FUNCTION dp_mark_public(tbl regclass, column_name text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    said text := dbext_private.record_public_column(tbl, column_name);
BEGIN
    EXECUTE format('GRANT SELECT ON TABLE %s TO dbext_owner', tbl);
    RETURN said;
END $$;
COMMENT ON FUNCTION dp_mark_public(regclass, text) IS
    'Declare that the values of a column are public, so that group keys may be read from it. For the owner of its table.';

CREATE FUNCTION dbext_private.ask(
    tbl regclass, window_start text, window_end text, predicate text, measure text, epsilon numeric, noise text
) RETURNS dbext.window_answer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN jsonb_populate_record(NULL::dbext.window_answer, dbext_private.call('window_stats', jsonb_build_object(
        'tbl', tbl::oid::bigint, 'window_start', window_start, 'window_end', window_end,
        'predicate', predicate, 'measure', measure, 'epsilon', epsilon::text, 'noise', noise)));
END $$;
COMMENT ON FUNCTION dbext_private.ask(regclass, text, text, text, text, numeric, text) IS 'One question, whichever function asks it.';

CREATE FUNCTION dp_window_stats(
    tbl regclass, window_start text, window_end text, predicate text DEFAULT NULL, measure text DEFAULT 'net', epsilon numeric DEFAULT NULL,
    noise text DEFAULT NULL
) RETURNS dbext.window_answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.ask(tbl, window_start, window_end, predicate, measure, epsilon, noise);
END $$;
COMMENT ON FUNCTION dp_window_stats(regclass, text, text, text, text, numeric, text) IS
    'Count over a past window, with its error; text dates are read in the table''s time zone. Charged once, remembered for ever.';

CREATE FUNCTION dp_window_stats(
    tbl regclass, window_start timestamptz, window_end timestamptz, predicate text DEFAULT NULL, measure text DEFAULT 'net', epsilon numeric DEFAULT NULL,
    noise text DEFAULT NULL
) RETURNS dbext.window_answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
BEGIN
    RETURN dbext_private.ask(tbl, window_start::text, window_end::text, predicate, measure, epsilon, noise);
END $$;
COMMENT ON FUNCTION dp_window_stats(regclass, timestamptz, timestamptz, text, text, numeric, text) IS
    'Count over a past window between two moments, with its error. Charged once, remembered for ever.';

CREATE FUNCTION dp_window_count(
    tbl regclass, window_start text, window_end text, predicate text DEFAULT NULL, measure text DEFAULT 'net', epsilon numeric DEFAULT NULL,
    noise text DEFAULT NULL
) RETURNS double precision
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (dbext_private.ask(tbl, window_start, window_end, predicate, measure, epsilon, noise)).value;
END $$;
COMMENT ON FUNCTION dp_window_count(regclass, text, text, text, text, numeric, text) IS
    'Count over a past window; text dates are read in the table''s time zone. Charged once, remembered for ever.';

CREATE FUNCTION dp_window_count(
    tbl regclass, window_start timestamptz, window_end timestamptz, predicate text DEFAULT NULL, measure text DEFAULT 'net', epsilon numeric DEFAULT NULL,
    noise text DEFAULT NULL
) RETURNS double precision
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
BEGIN
    RETURN (dbext_private.ask(tbl, window_start::text, window_end::text, predicate, measure, epsilon, noise)).value;
END $$;
COMMENT ON FUNCTION dp_window_count(regclass, timestamptz, timestamptz, text, text, numeric, text) IS
    'Count over a past window between two moments. Charged once, remembered for ever.';

CREATE FUNCTION dbext_private.answer_question(request jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('answer_question', request)::text;
END $$;
COMMENT ON FUNCTION dbext_private.answer_question(jsonb) IS
    'What the second session runs: charge, draw, store. For dbext_owner alone.';

CREATE FUNCTION dbext_private.reserve_release(request jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('reserve_release', request)::text;
END $$;
COMMENT ON FUNCTION dbext_private.reserve_release(jsonb) IS
    'What the second session runs for a declaration: reserve its lifetime loss. For dbext_owner alone.';

CREATE FUNCTION dbext_private.sealable_tables() RETURNS integer[]
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(h.table_id ORDER BY h.table_id), '{}')
    FROM dbext_private.seal_head AS h
    WHERE dbext_private.is_admin(dbext_private.caller()) AND dbext_private.table_tick_end(h.table_id, h.tick + 1) <= dbext_private.effective_now()
$$;
COMMENT ON FUNCTION dbext_private.sealable_tables() IS 'Tables with a tick that has ended and is not sealed.';

CREATE FUNCTION dbext_private.table_label(table_id integer) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%I.%I', t.schema_name, t.table_name) FROM dbext_private.tracked_table AS t WHERE t.table_id = table_label.table_id
$$;
COMMENT ON FUNCTION dbext_private.table_label(integer) IS 'The name of a tracked table, for messages.';

CREATE FUNCTION dbext_private.due_releases() RETURNS integer[]
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(r.release_id ORDER BY r.release_id), '{}')
    FROM dbext_private.release AS r JOIN dbext_private.seal_head AS h USING (table_id)
    WHERE dbext_private.is_admin(dbext_private.caller())
        AND ((r.state = 'active' AND r.next_end <= h.tick) OR (r.state <> 'dropped' AND r.next_answer < r.next_period))
$$;
COMMENT ON FUNCTION dbext_private.due_releases() IS 'Releases with a sealed period that is not drawn, or a drawn one that is not in their table.';

CREATE FUNCTION dbext_private.commit_durably() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF pg_catalog.current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM pg_catalog.set_config('synchronous_commit', 'on', true);
    END IF;
END $$;
COMMENT ON FUNCTION dbext_private.commit_durably() IS
    'Until the end of this transaction: a crash must not take back noise that is answered from, nor rows that were read.';

-- Statistics say little about changes that just came, and nothing about what they add up to: totals and keys are hashed, never looped.
CREATE FUNCTION dbext_private.draw_release(release_id integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off SET enable_mergejoin = off SET work_mem = '64MB' SET jit = off AS $$
BEGIN
    PERFORM dbext_private.commit_durably();
    RETURN dbext_private.call('draw_release', jsonb_build_object('release_id', release_id));
END $$;
COMMENT ON FUNCTION dbext_private.draw_release(integer) IS
    'Charges and draws the nodes of every due period of one release, all in this transaction; returns how many periods. Nothing noisy leaves yet.';

CREATE FUNCTION dbext_private.publish_release(release_id integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM dbext_private.commit_durably();
    RETURN dbext_private.call('publish_release', jsonb_build_object('release_id', release_id));
END $$;
COMMENT ON FUNCTION dbext_private.publish_release(integer) IS
    'Writes the rows of every drawn period whose nodes are committed; returns how many periods. Rolled back and run again, it writes the same rows.';

CREATE FUNCTION dbext_private.note_release_error(release_id integer, state text) RETURNS text
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE dbext_private.release AS r SET last_error = substring(note_release_error.state FROM '^[0-9A-Z]{5}$')
    WHERE r.release_id = note_release_error.release_id AND dbext_private.is_admin(dbext_private.caller()) RETURNING r.name
$$;
COMMENT ON FUNCTION dbext_private.note_release_error(integer, text) IS 'Note the SQLSTATE of a failed publication, and nothing else of it; returns the release''s name.';

CREATE FUNCTION dbext_private.failing(failure text, place text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT failure || CASE WHEN failure = 'DP099' AND place ~ '^in [a-z_]+/[a-z_]+\.py, line [0-9]+$' THEN ' ' || place ELSE '' END
$$;
COMMENT ON FUNCTION dbext_private.failing(text, text) IS
    'An SQLSTATE as a warning shows it: of a fault of our own also the place in our code, which is all the detail that can hold no data.';

CREATE PROCEDURE dp_publish()
LANGUAGE plpgsql SECURITY INVOKER AS $$
DECLARE
    target integer;
    more boolean;
    failure text;
    place text;
BEGIN
    FOREACH target IN ARRAY dbext_private.sealable_tables() LOOP
        LOOP
            BEGIN
                more := (dbext_private.seal_table(target) OPERATOR(pg_catalog.->>) 'more')::pg_catalog.bool;
            EXCEPTION WHEN OTHERS THEN
                GET STACKED DIAGNOSTICS place = PG_EXCEPTION_DETAIL;
                RAISE WARNING 'table % could not be sealed (SQLSTATE %)', dbext_private.table_label(target), dbext_private.failing(SQLSTATE, place);
                more := false;
            END;
            COMMIT;
            EXIT WHEN NOT more;
        END LOOP;
    END LOOP;
    FOREACH target IN ARRAY dbext_private.due_releases() LOOP
        BEGIN
            PERFORM dbext_private.draw_release(target);
            failure := NULL;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS place = PG_EXCEPTION_DETAIL;
            failure := SQLSTATE;
        END;
        COMMIT;
        BEGIN
            PERFORM dbext_private.publish_release(target);
        EXCEPTION WHEN OTHERS THEN
            IF failure IS NULL THEN
                GET STACKED DIAGNOSTICS place = PG_EXCEPTION_DETAIL;
                failure := SQLSTATE;
            END IF;
        END;
        IF failure IS NOT NULL THEN
            RAISE WARNING 'release % could not be published (SQLSTATE %): see dbext.release_status',
                dbext_private.note_release_error(target, failure), dbext_private.failing(failure, place);
        END IF;
        COMMIT;
    END LOOP;
END $$;
COMMENT ON PROCEDURE dp_publish() IS
    'Seal every tick that has ended, then draw and publish every due period of every release. Idempotent; call it outside a transaction block.';

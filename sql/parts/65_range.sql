-- Any range of time from what a release has published. Post-processing: nothing is charged, and readers of the release may ask.

CREATE TYPE dbext.range_answer AS (
    group_key text[], value double precision, std_error double precision, lower_95 double precision, upper_95 double precision,
    range_start timestamptz, range_end timestamptz, nodes bigint, status text, figure text);
COMMENT ON TYPE dbext.range_answer IS 'The estimate of one figure and group over a range of time, put together from published nodes.';
COMMENT ON COLUMN dbext.range_answer.group_key IS 'Values of the group columns, as text; empty without groups';
COMMENT ON COLUMN dbext.range_answer.value IS 'The estimate';
COMMENT ON COLUMN dbext.range_answer.std_error IS 'Standard error of its noise';
COMMENT ON COLUMN dbext.range_answer.lower_95 IS 'Lower end of the 95% interval for the noise';
COMMENT ON COLUMN dbext.range_answer.upper_95 IS 'Upper end';
COMMENT ON COLUMN dbext.range_answer.range_start IS 'Start of the range, exclusive; NULL: since the beginning';
COMMENT ON COLUMN dbext.range_answer.range_end IS 'End of the range, inclusive';
COMMENT ON COLUMN dbext.range_answer.nodes IS 'Stored nodes that were put together';
COMMENT ON COLUMN dbext.range_answer.status IS 'ok, or capture_gap: schema changes kept mutations of this range from being captured';
COMMENT ON COLUMN dbext.range_answer.figure IS 'Name of the figure';

CREATE FUNCTION dp_range_stats(release text, range_start text, range_end text) RETURNS SETOF dbext.range_answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext.range_answer, dbext_private.call('range_stats',
        jsonb_build_object('release', release, 'range_start', range_start, 'range_end', range_end)));
END $$;
COMMENT ON FUNCTION dp_range_stats(text, text, text) IS
    'A range of time from the published nodes of a release, a row per figure and group, with its error; text dates are read in the table''s time zone. Free.';

CREATE FUNCTION dp_range_stats(release text, range_start timestamptz, range_end timestamptz) RETURNS SETOF dbext.range_answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext.range_answer, dbext_private.call('range_stats',
        jsonb_build_object('release', release, 'range_start', range_start::text, 'range_end', range_end::text)));
END $$;
COMMENT ON FUNCTION dp_range_stats(text, timestamptz, timestamptz) IS
    'A range of time between two moments from the published nodes of a release, a row per figure and group, with its error. Free.';

CREATE FUNCTION dp_range(release text, range_start text, range_end text, VARIADIC group_key text[] DEFAULT '{}') RETURNS double precision
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('range_value',
        jsonb_build_object('release', release, 'range_start', range_start, 'range_end', range_end, 'group_key', group_key));
END $$;
COMMENT ON FUNCTION dp_range(text, text, text, text[]) IS
    'A range of time from the published nodes of a release, of one figure for one group key; text dates are read in the table''s time zone. Free.';

CREATE FUNCTION dp_range(release text, range_start timestamptz, range_end timestamptz, VARIADIC group_key text[] DEFAULT '{}')
RETURNS double precision
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
BEGIN
    RETURN dbext_private.call('range_value',
        jsonb_build_object('release', release, 'range_start', range_start::text, 'range_end', range_end::text, 'group_key', group_key));
END $$;
COMMENT ON FUNCTION dp_range(text, timestamptz, timestamptz, text[]) IS
    'A range of time between two moments from the published nodes of a release, of one figure for one group key. Free.';

CREATE TYPE dbext.restated_window AS (
    release_no bigint, group_key text[], window_start timestamptz, window_end timestamptz, value double precision, std_error double precision,
    figure text);
COMMENT ON TYPE dbext.restated_window IS 'A published window of one figure and group, estimated anew from all that its release has published since.';
COMMENT ON COLUMN dbext.restated_window.release_no IS 'Number of the period, as in the release table';
COMMENT ON COLUMN dbext.restated_window.group_key IS 'Values of the group columns, as text; empty without groups';
COMMENT ON COLUMN dbext.restated_window.window_start IS 'Start of the window, exclusive';
COMMENT ON COLUMN dbext.restated_window.window_end IS 'End of the window, inclusive';
COMMENT ON COLUMN dbext.restated_window.value IS 'The estimate by least squares';
COMMENT ON COLUMN dbext.restated_window.std_error IS 'Standard error of its noise: never above that of the published row';
COMMENT ON COLUMN dbext.restated_window.figure IS 'Name of the figure';

CREATE FUNCTION dp_restated(release text) RETURNS SETOF dbext.restated_window
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext.restated_window,
        dbext_private.call('restated_history', jsonb_build_object('release', release)));
END $$;
COMMENT ON FUNCTION dp_restated(text) IS
    'The history of a release restated by full least squares over everything it has published. Free; published rows never change.';

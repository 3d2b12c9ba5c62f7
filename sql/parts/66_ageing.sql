-- Age-dependent privacy: a stated model of how an entry's status moves, and what aged or late releases tell about it now.

CREATE TABLE dbext_private.process (
    table_id    integer NOT NULL REFERENCES dbext_private.tracked_table ON DELETE CASCADE,
    column_name text NOT NULL,
    type_name   text NOT NULL,
    transition  jsonb NOT NULL,
    set_by      text NOT NULL,
    set_at      timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    PRIMARY KEY (table_id, column_name, type_name)
);
COMMENT ON TABLE dbext_private.process IS
    'Stated Markov chains of the status in a column, per tick; type_name is an entry type, or empty for all others. Assumed, never checked.';

DO $$
BEGIN
    PERFORM pg_catalog.pg_extension_config_dump('dbext_private.process'::pg_catalog.regclass, '');
END $$;

CREATE TYPE dbext_private.age_risk AS (
    table_id integer, release text, column_name text, epsilon numeric, output_loss double precision, every bigint, age bigint,
    kept double precision, peak double precision, bounded boolean, reason text);
COMMENT ON TYPE dbext_private.age_risk IS 'What one release tells about the present status in one column, under its model.';

CREATE FUNCTION dbext_private.age_risks() RETURNS SETOF dbext_private.age_risk
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext_private.age_risk, dbext_private.call('age_risks', '{}'));
END $$;
COMMENT ON FUNCTION dbext_private.age_risks() IS 'Age-dependent figures of every release of a table with a model. From plans and models alone.';

CREATE VIEW dbext.age_risk AS
SELECT u.release, pg_catalog.format('%I.%I', t.schema_name, t.table_name) AS table_name, u.column_name, u.epsilon, u.output_loss, u.every, u.age,
       u.kept, u.peak, u.bounded, u.reason
FROM dbext_private.age_risks() AS u
JOIN dbext_private.tracked_table AS t ON t.table_id OPERATOR(pg_catalog.=) u.table_id;
COMMENT ON VIEW dbext.age_risk IS
    'What releases tell about an entry''s present status if it moves as dp_set_process says: beside epsilon, never in its place.';
COMMENT ON COLUMN dbext.age_risk.release IS 'Name of the release; NULL: all of the table, and all answers to questions, together';
COMMENT ON COLUMN dbext.age_risk.table_name IS 'The table';
COMMENT ON COLUMN dbext.age_risk.column_name IS 'The column that holds the status';
COMMENT ON COLUMN dbext.age_risk.epsilon IS 'The lifetime loss that the release is charged for, which holds without any model';
COMMENT ON COLUMN dbext.age_risk.output_loss IS 'Replacement loss of the dearest single output; NULL: not pure, so that nothing is proven';
COMMENT ON COLUMN dbext.age_risk.every IS 'Fewest ticks between the newest data of two outputs';
COMMENT ON COLUMN dbext.age_risk.age IS 'How many ticks old the newest data is when an output appears';
COMMENT ON COLUMN dbext.age_risk.kept IS 'Delta: how much of a difference the process keeps over that many ticks, 0 to 1';
COMMENT ON COLUMN dbext.age_risk.peak IS 'The largest age-dependent loss at any time; NULL: without end, or not proven';
COMMENT ON COLUMN dbext.age_risk.bounded IS 'Whether it stays below a figure for ever';
COMMENT ON COLUMN dbext.age_risk.reason IS 'Why';

CREATE TYPE dbext.risk_point AS (moment timestamptz, age bigint, risk double precision, published boolean);
COMMENT ON TYPE dbext.risk_point IS 'The age-dependent loss of a release at the end of one tick.';
COMMENT ON COLUMN dbext.risk_point.moment IS 'End of the tick';
COMMENT ON COLUMN dbext.risk_point.age IS 'Age of information: how many ticks old the newest data published by then is; NULL: nothing is';
COMMENT ON COLUMN dbext.risk_point.risk IS 'What everything published by then tells about the status at that moment; NULL: without end';
COMMENT ON COLUMN dbext.risk_point.published IS 'Whether an output appears at that moment';

CREATE TYPE dbext.ageing_choice AS (strategy text, every bigint, age bigint, epsilon double precision, error double precision, peak double precision);
COMMENT ON TYPE dbext.ageing_choice IS 'A way to keep the age-dependent loss below a target.';
COMMENT ON COLUMN dbext.ageing_choice.strategy IS 'best, noise only (nothing is aged), or ageing only (as good as no noise for the sake of the target)';
COMMENT ON COLUMN dbext.ageing_choice.every IS 'Ticks between two outputs';
COMMENT ON COLUMN dbext.ageing_choice.age IS 'How many ticks old the data of an output is when it appears';
COMMENT ON COLUMN dbext.ageing_choice.epsilon IS 'Replacement loss of one output';
COMMENT ON COLUMN dbext.ageing_choice.error IS 'Of noise and staleness together, just before the next output';
COMMENT ON COLUMN dbext.ageing_choice.peak IS 'Its peak of age-dependent loss, at most the target';

CREATE FUNCTION dp_set_process(
    tbl regclass, column_name text, transition double precision[] DEFAULT NULL, dwell double precision[] DEFAULT NULL, entry_type text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('set_process', jsonb_build_object('tbl', tbl::oid::bigint, 'column_name', column_name,
        'transition', to_jsonb(transition), 'dwell', to_jsonb(dwell), 'entry_type', entry_type)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_set_process(regclass, text, double precision[], double precision[], text) IS
    'State how the status in a column moves: a transition matrix per tick, or mean dwell times in ticks. Neither: forget the model.';

CREATE FUNCTION dp_risk_curve(release text, column_name text DEFAULT NULL, ticks integer DEFAULT 60, late integer DEFAULT 0) RETURNS SETOF dbext.risk_point
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext.risk_point, dbext_private.call('risk_curve',
        jsonb_build_object('release', release, 'column_name', column_name, 'ticks', ticks, 'late', late)));
END $$;
COMMENT ON FUNCTION dp_risk_curve(text, text, integer, integer) IS
    'The age-dependent loss of a release and the age of its information over time, from the tick before its first output. Reads no data.';

CREATE FUNCTION dp_plan_ageing(
    tbl regclass, column_name text, target double precision, spread double precision DEFAULT 1, longest integer DEFAULT 30, oldest integer DEFAULT 90
) RETURNS SETOF dbext.ageing_choice
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext.ageing_choice, dbext_private.call('plan_ageing', jsonb_build_object(
        'tbl', tbl::oid::bigint, 'column_name', column_name, 'target', target, 'spread', spread, 'longest', longest, 'oldest', oldest)));
END $$;
COMMENT ON FUNCTION dp_plan_ageing(regclass, text, double precision, double precision, integer, integer) IS
    'The age and noise of least error whose age-dependent loss never passes a target, with the two extremes beside it. Enlarges no budget.';

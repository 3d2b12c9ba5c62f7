-- Auditing what was promised: what a DBA or an analyst stated beforehand, the audit itself, and how the last ones ended.

CREATE TABLE dbext_private.acceptable_delta (
    budget_id   integer PRIMARY KEY REFERENCES dbext_private.budget,
    delta       numeric NOT NULL CONSTRAINT acceptable_delta_range CHECK (delta OPERATOR(pg_catalog.>=) 0.0 AND delta OPERATOR(pg_catalog.<) 1.0),
    declared_by text NOT NULL,
    declared_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
COMMENT ON TABLE dbext_private.acceptable_delta IS 'The largest delta that the DBA declared acceptable for a budget: an audit fails above it.';

CREATE TABLE dbext_private.tolerance (
    release_id integer PRIMARY KEY REFERENCES dbext_private.release,
    tolerance  numeric NOT NULL CONSTRAINT tolerance_positive CHECK (tolerance OPERATOR(pg_catalog.>) 0.0),
    stated_by  text NOT NULL,
    stated_at  timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
COMMENT ON TABLE dbext_private.tolerance IS 'How large an error the decisions taken from a release can bear: an audit fails where its error is larger.';

CREATE TABLE dbext_private.audit (
    audit_no   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    audited_by text NOT NULL,
    audited_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    passed     boolean NOT NULL,
    findings   jsonb NOT NULL
);
COMMENT ON TABLE dbext_private.audit IS 'Audits and what they found. Private: statistics of stored noise reveal something of exact cells.';

DO $$
DECLARE
    relation text;
BEGIN
    FOREACH relation IN ARRAY ARRAY['acceptable_delta', 'tolerance', 'audit', 'audit_audit_no_seq'] LOOP
        PERFORM pg_catalog.pg_extension_config_dump(('dbext_private.' || relation)::pg_catalog.regclass, '');
    END LOOP;
END $$;

CREATE TYPE dbext.audit_finding AS (
    area text, "check" text, subject text, verdict text, figure double precision, bound double precision, detail text);
COMMENT ON TYPE dbext.audit_finding IS 'What one check of an audit found.';
COMMENT ON COLUMN dbext.audit_finding.area IS 'transcript, ledger, or claim';
COMMENT ON COLUMN dbext.audit_finding."check" IS 'What was checked';
COMMENT ON COLUMN dbext.audit_finding.subject IS 'The release, table, budget or schema that was looked at';
COMMENT ON COLUMN dbext.audit_finding.verdict IS 'passed, failed, or warning';
COMMENT ON COLUMN dbext.audit_finding.figure IS 'What was measured, where there is a figure';
COMMENT ON COLUMN dbext.audit_finding.bound IS 'What it should be or must not pass';
COMMENT ON COLUMN dbext.audit_finding.detail IS 'In words';

CREATE FUNCTION dp_audit() RETURNS SETOF dbext.audit_finding
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM jsonb_populate_recordset(NULL::dbext.audit_finding, dbext_private.call('audit', '{}'));
END $$;
COMMENT ON FUNCTION dp_audit() IS
    'Check everything ever published, charged and promised in this database. In a REPEATABLE READ transaction, for administrators: the findings are private.';

CREATE FUNCTION dp_accept_delta(tbl regclass, delta numeric) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('accept_delta', jsonb_build_object('tbl', tbl::oid::bigint, 'delta', delta::text)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_accept_delta(regclass, numeric) IS 'Declare the largest delta that is acceptable for a table''s budget; an audit fails above it.';

CREATE FUNCTION dp_set_tolerance(release text, tolerance numeric) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN dbext_private.call('set_tolerance', jsonb_build_object('release', release, 'tolerance', tolerance::text)) #>> '{}';
END $$;
COMMENT ON FUNCTION dp_set_tolerance(text, numeric) IS
    'State how large an error the decisions taken from a release can bear; an audit fails where its 95% interval reaches further.';

CREATE VIEW dbext.audit_status AS
SELECT a.audit_no, a.audited_at, a.passed FROM dbext_private.audit AS a;
COMMENT ON VIEW dbext.audit_status IS 'When this database was audited, and whether it passed. The findings are for administrators.';
COMMENT ON COLUMN dbext.audit_status.audit_no IS 'Number of the audit';
COMMENT ON COLUMN dbext.audit_status.audited_at IS 'When';
COMMENT ON COLUMN dbext.audit_status.passed IS 'Whether no check failed';

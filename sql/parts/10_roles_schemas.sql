-- Roles are cluster-wide, so another database may have made them already: created only if absent, refused if they can do more than they should.

DO $$
DECLARE
    wanted record;
    present pg_catalog.pg_roles;
BEGIN
    FOR wanted IN SELECT * FROM (VALUES ('dbext_owner', true), ('dbext_admin', false), ('dbext_analyst', false), ('dbext_reader', false))
        AS roles (name, bypasses_row_security)
    LOOP
        SELECT * INTO present FROM pg_catalog.pg_roles AS r WHERE r.rolname = wanted.name;
        IF NOT FOUND THEN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN %s', wanted.name,
                CASE WHEN wanted.bypasses_row_security THEN 'BYPASSRLS' ELSE 'NOBYPASSRLS' END);
        ELSIF present.rolcanlogin OR present.rolsuper OR present.rolcreaterole OR present.rolcreatedb OR present.rolreplication
            OR present.rolbypassrls <> wanted.bypasses_row_security THEN
            RAISE EXCEPTION 'role "%" exists with attributes that dbext does not give it', wanted.name
                USING ERRCODE = 'DP004', HINT = 'It must be NOLOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB NOREPLICATION, and BYPASSRLS only for dbext_owner.';
        END IF;
    END LOOP;
    IF EXISTS (SELECT FROM pg_catalog.pg_auth_members AS m JOIN pg_catalog.pg_roles AS r ON r.oid IN (m.roleid, m.member) WHERE r.rolname = 'dbext_owner') THEN
        RAISE EXCEPTION 'role "dbext_owner" has members or is a member of another role'
            USING ERRCODE = 'DP004', HINT = 'It owns private data: nobody may act as dbext_owner. Revoke these memberships.';
    END IF;
END $$;

CREATE SCHEMA dbext AUTHORIZATION dbext_owner;
COMMENT ON SCHEMA dbext IS 'What is public about tracked tables, budgets and releases.';
CREATE SCHEMA dbext_private AUTHORIZATION dbext_owner;
COMMENT ON SCHEMA dbext_private IS 'Changelogs, seals, admission, exact sums and noise: nothing here may be read by anyone but dbext.';
CREATE SCHEMA dp_release AUTHORIZATION dbext_owner;
COMMENT ON SCHEMA dp_release IS 'Release tables: one per declared release.';

-- Runs once, as the superuser, when a new volume is set up.
CREATE EXTENSION dbext CASCADE;

-- dbext 0.1.0: differentially private continual releases over dynamic tables.
\echo Use "CREATE EXTENSION dbext CASCADE" to load this file. \quit

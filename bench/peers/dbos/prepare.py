# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Gives DBOS empty tables, so that every measurement finds the same: prepare.py DSN."""

import sys

import psycopg
from dbos import run_dbos_database_migrations

with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    connection.execute("DROP SCHEMA IF EXISTS dbos CASCADE")
    run_dbos_database_migrations(sys.argv[1])
    connection.execute("CHECKPOINT")

"""The tables of a study's database, and what marks a SQLite file as one."""

from __future__ import annotations

import sqlite3

#: Marks a SQLite file as a study; the version rises with every change that an older zhat could not read, or would write
#: past: since version 3 everything is in a journal too.
APPLICATION_ID = 0x5A484154
SCHEMA_VERSION = 3

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE points (
    id INTEGER PRIMARY KEY, origin TEXT NOT NULL, unit BLOB NOT NULL, x BLOB NOT NULL, asked_at REAL NOT NULL,
    holder TEXT, lease_until REAL, attempts INTEGER NOT NULL,
    told INTEGER UNIQUE, y REAL, noise_std REAL, failure TEXT NOT NULL, seconds REAL, told_at REAL, worker TEXT
);
CREATE INDEX open_points ON points (id) WHERE told IS NULL;
CREATE TABLE repeats (
    id INTEGER PRIMARY KEY, point INTEGER NOT NULL, y REAL, noise_std REAL, failure TEXT NOT NULL, seconds REAL,
    told_at REAL NOT NULL, worker TEXT
);
"""
#: Tables that older studies do not have: they get them when they are next written to.
LATER_SCHEMA = """
CREATE TABLE IF NOT EXISTS changes (
    id INTEGER PRIMARY KEY, point INTEGER NOT NULL, change TEXT NOT NULL, changed_at REAL NOT NULL,
    n_points INTEGER NOT NULL, told INTEGER, y REAL, noise_std REAL, failure TEXT NOT NULL, seconds REAL,
    told_at REAL, worker TEXT
);
CREATE TABLE IF NOT EXISTS tracebacks (
    id INTEGER PRIMARY KEY, point INTEGER NOT NULL, failure TEXT NOT NULL, traceback TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS checks (point INTEGER PRIMARY KEY, checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS numbers (point INTEGER PRIMARY KEY, number INTEGER NOT NULL);
"""


def lay_out(cursor: sqlite3.Cursor) -> None:
    """Make all tables in an empty database, within the transaction that the cursor is in."""
    _execute(cursor, SCHEMA + LATER_SCHEMA)
    cursor.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    cursor.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def bring_up_to_date(cursor: sqlite3.Cursor) -> None:
    """Give the database of an older study what it lacks, within the transaction that the cursor is in."""
    _execute(cursor, LATER_SCHEMA)
    cursor.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _execute(cursor: sqlite3.Cursor, schema: str) -> None:
    # Not executescript, which would end the transaction.
    for statement in schema.split(";"):
        if statement.strip():
            cursor.execute(statement)

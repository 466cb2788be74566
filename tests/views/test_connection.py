"""Queries that are ended from another thread."""

from __future__ import annotations

import threading
import time

import duckdb

from nsightlens.views.connection import connect, interrupt_all


def test_closed_connections_do_not_keep_a_query_from_being_ended() -> None:
    closed = [connect() for _ in range(8)]  # they are held in no order
    running = connect()
    for connection in closed:
        connection.close()
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            running.sql("SELECT count(*) FROM range(1000000000) a, range(100000) b WHERE (a.range * b.range) % 7 = 3").fetchall()
        except duckdb.Error as exc:
            errors.append(exc)

    asking = threading.Thread(target=ask)
    asking.start()
    until = time.monotonic() + 60
    while asking.is_alive() and time.monotonic() < until:
        interrupt_all()
        time.sleep(0.05)
    asking.join(1)
    assert [type(error) for error in errors] == [duckdb.InterruptException]
    running.close()

"""The stack of push/pop ranges, against rows worked out by hand."""

from __future__ import annotations

from nsightlens.analyses import nvtx_pushpop_trace
from tests.catalogs import asking, catalog, rows_of

RANGES = """run,tool,profile_id,process_id,thread,start_ns,duration_ns,kind,name,range_id
base,nsys,P,p,1,0,100,nvtx_push_pop,outer,1
base,nsys,P,p,1,10,50,nvtx_start_end,no part of the stack,2
base,nsys,P,p,1,20,30,operator,inner,3
base,nsys,P,p,1,25,5,nvtx_push_pop,innermost,4
base,nsys,P,p,1,60,10,nvtx_push_pop,second,5
base,nsys,P,p,2,20,5,nvtx_push_pop,another thread,6
base,nsys,P,p,1,30,,nvtx_push_pop,never closed,7
base,nsys,P,p,1,30,,nvtx_mark,mark,8
base,kineto,K,k,1,0,9,operator,no NVTX,9"""


def test_the_stack_is_of_push_pop_ranges_of_the_thread() -> None:
    processes = "profile_id,process_id,pid,rank\nP,p,77,3"
    connection = catalog(ranges=rows_of("ranges", RANGES), processes=rows_of("processes", processes))
    ask = asking(connection)
    rows = nvtx_pushpop_trace.analyse(ask).to_pylist()
    keys = ("name", "children_ns", "own_ns", "level", "children", "parent_id", "thread")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        ("outer", 40, 60, 0, 2, None, 1), ("inner", 5, 25, 1, 1, 1, 1), ("another thread", 0, 5, 0, 0, None, 2),
        ("innermost", 0, 5, 2, 0, 3, 1), ("second", 0, 10, 1, 0, 1, 1)]
    assert {(row["rank"], row["pid"], row["profile_id"]) for row in rows} == {(3, 77, "P")}


def test_no_ranges_are_no_rows() -> None:
    connection = catalog()
    assert nvtx_pushpop_trace.analyse(asking(connection)).num_rows == 0

"""What people call the rows of `time_tree`, where the view has a shorter word."""

from __future__ import annotations

NODE_NAMES = {"communication": "exposed communication", "copies": "exposed copies", "waiting": "waiting in calls",
              "fence": "waiting for work from before", "unknown": "outside of recorded calls",
              "no launches": "no launches recorded", "another GPU": "another GPU works", "MPI": "MPI or NCCL calls"}

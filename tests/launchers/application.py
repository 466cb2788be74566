"""What the ranks of the matrix run: says when it is ready, and ends with 40 + the number of the first signal that comes.

application.py FOLDER RANK_VARIABLE HOW RANKS; HOW: 0 and 7 end with that code once all ranks are ready, `wait` waits for a
signal, `stubborn` ignores them.
"""

import os
import signal
import sys
import time
from pathlib import Path

folder, variable, how, ranks = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
rank = os.environ.get(variable, "0")


def end(number: int, frame: object) -> None:
    for other in NUMBERS:
        signal.signal(other, signal.SIG_IGN)
    folder.joinpath(f"code{rank}").write_text(str(40 + number))
    sys.exit(40 + number)


NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
for each in NUMBERS:
    signal.signal(each, signal.SIG_IGN if how == "stubborn" else end)
if how.isdigit():
    folder.joinpath(f"code{rank}").write_text(how)
folder.joinpath(f"ready{rank}").touch()
if how.isdigit():   # not earlier: some launchers end all ranks once one has ended with a code
    while not all(folder.joinpath(f"ready{other}").exists() for other in range(ranks)):
        time.sleep(0.01)
    sys.exit(int(how))
for _ in range(1200):   # not one long sleep: a signal just before it would wait for its end
    time.sleep(0.1)

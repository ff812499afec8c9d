"""Signals that ask a process to end, kept until a step is over.

In the middle of a step there is no state from which training resumes exactly. While a run has a
checkpoint, a signal only leaves a note; when the step is over, the state is written, and then the
signal does what it would have done. A second signal does it at once.
"""

import signal
import sys
import threading
from types import FrameType
from typing import Any

#: SIGHUP, the end of a terminal, is not known everywhere.
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Signals:
    """Catches the signals that would end the process; in the main thread, or not at all."""

    def __init__(self) -> None:
        #: The first that came, 0 if none has.
        self.received = 0
        self._former: dict[int, Any] = {}

    def catch(self) -> None:
        """Take note of signals from now on."""
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread may ask for signals
        for number in SIGNALS:
            handler = signal.getsignal(number)
            # One that is ignored, as under nohup, or that is not Python's, stays as it is.
            if handler not in (signal.SIG_IGN, None):
                self._former[number] = handler
                signal.signal(number, self._note)

    def release(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former.clear()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received:  # the second one
            self.obey(number, "the step was not finished")
        self.received = number

    def obey(self, number: int, message: str) -> None:
        """Do what a signal asked for; `message` describes what became of the work."""
        handler = self._former.get(number)
        self.received = 0
        self.release()
        if handler is signal.default_int_handler:
            raise KeyboardInterrupt
        if callable(handler):
            handler(number, None)
            return
        name = signal.Signals(number).name
        print(f"dkae: ended by {name}; {message}", file=sys.stderr, flush=True)
        raise SystemExit(128 + number)

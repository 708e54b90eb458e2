"""The secret that makes somebody the teacher of a server: where it comes from, and slow answers to guesses.

$LOUPE_TEACHER_SECRET, or else the file `teacher-secret` in the data folder, which the first start makes and
only the owner of the process can read. The secret itself never stands in a log, a link or a page; what is
kept of a try is that it was wrong, and when.
"""

import hashlib
import ipaddress
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine import plain_log
from engine.folders import data_folder
from wording import words

FILE, VARIABLE = "teacher-secret", "LOUPE_TEACHER_SECRET"
SHORTEST, LONGEST = 8, 200  # characters
FREE = 3  # wrong tries of one session before it has to wait, 2 s, then 4, 8 and so on
MOST_WAIT = 60.0  # seconds
# So many wrong ones a minute from one address: that address has one try each PAUSE seconds. So many from all
# addresses together: each that was wrong has one try a minute, and one that was not is looked at as ever.
WINDOW, MOST_IN_WINDOW, PAUSE, MOST_TOGETHER = 60.0, 20, 5.0, 200
SESSIONS = 5000  # of which wrong tries are remembered, and as many addresses
BROWSERS = 100  # that were right and are remembered
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that look alike
say = words("engine.teacher_secret")


class WrongSecretError(ValueError):
    """It was looked at, and is not the secret."""


class TooSoonError(ValueError):
    """It was not looked at: too many wrong ones came before."""


def path(home: str | Path | None = None) -> Path:
    """The file that holds the secret where the environment doesn't."""
    return data_folder(home).absolute() / FILE


def from_environment() -> bool:
    """Whether whoever runs the server chose the secret."""
    return bool(os.environ.get(VARIABLE, "").strip())


def secret_of(home: str | Path | None = None) -> str:
    """The secret of a data folder; made on the way if there is none.

    Raises:
        ValueError: one sentence, if it is too short, or its file can't be read or made.
    """
    chosen = os.environ.get(VARIABLE, "").strip()
    file = path(home)
    if not chosen:
        try:
            chosen = _read(file) or _make(file)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise ValueError(say("no_file", file=file, reason=reason)) from error
    if len(chosen) < SHORTEST:
        raise ValueError(say("short", place=VARIABLE if from_environment() else file, least=SHORTEST))
    return chosen


def _read(file: Path) -> str:
    """The word in the file, "" without a file. Others may not read it: that is mended on the way."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return ""
    with open(handle, "rb") as opened:
        if os.name == "posix" and os.fstat(handle).st_mode & 0o077:
            with suppress(OSError):  # another user's file
                os.fchmod(handle, 0o600)
        return opened.read(4 * LONGEST).decode("utf-8").strip()


def _make(file: Path) -> str:
    """A new secret in its file; if another process is quicker, that one's."""
    file.parent.mkdir(parents=True, exist_ok=True)
    made = "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(4))  # 79 bits
    temporary = file.with_name(f".{FILE}.{os.getpid()}-{time.monotonic_ns()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "wb") as opened:
            opened.write(f"{made}\n".encode())
            opened.flush()
            os.fsync(handle)
        try:
            os.link(temporary, file)  # fails if there is one
        except FileExistsError:
            pass
        except OSError:  # a file system without such links
            if not file.exists():
                os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
    return _read(file)


class Guard:
    """Compares what people type with the secret; wrong tries make a session, and its whole address, wait.

    Whoever guesses on and on must not keep the teacher out: what they did at one address is no wait at
    another, such as the machine itself, and a browser that was right before waits for its own tries alone.
    One object serves all sessions of a server.

    Args:
        home: the data folder; None for $LOUPE_HOME.
        clock: seconds that never go back.
    """

    def __init__(self, home: str | Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.home = data_folder(home).absolute()
        self._clock = clock
        self._lock = threading.Lock()
        self._of: dict[str, tuple[int, float]] = {}  # session: wrong tries, and until when it has to wait
        self._at: dict[str, deque[float]] = {}  # address: when its newest wrong tries were
        self._together: deque[float] = deque(maxlen=MOST_TOGETHER)
        self._right: dict[tuple[bytes, str], None] = {}  # secret and browser, the newest last

    def mark(self) -> str:
        """Changes when the secret does, and doesn't give it away: who was right before has to show it anew.

        Raises:
            ValueError: as `secret_of`.
        """
        return _digest(f"mark {secret_of(self.home)}").hex()

    def check(self, typed: str, session: str, *, address: str = "", browser: str = "") -> None:
        """See whether somebody knows the secret.

        Args:
            typed: what they gave.
            session: who they are, as far as the server knows.
            address: from where they come; "" for the machine itself. Of IPv6 the first 64 bits count, which
                are one house: whoever has it may choose the others.
            browser: a word that only this browser knows, or a fingerprint of it; "" if it has none.

        Raises:
            TooSoonError: one sentence, if they, or all people at their address, guessed too often.
            WrongSecretError: one sentence, if it is not the secret.
            ValueError: as `secret_of`.
        """
        kept, address = _digest(secret_of(self.home)), _network(address)
        with self._lock:
            now = self._clock()
            if (left := self._wait(session, address, (kept, browser), now)) > 0:
                raise TooSoonError(say("too_soon", n=max(1, round(left))))
            if secrets.compare_digest(_digest(typed.strip()[:LONGEST]), kept):
                self._of.pop(session, None)
                _remember(self._right, (kept, browser), None, BROWSERS)
                return
            tries = self._note(session, address, now)
        plain_log.warning("wrong teacher secret", home=self.home, tries=tries)
        raise WrongSecretError(say("wrong"))

    def _note(self, session: str, address: str, now: float) -> int:
        """Remember a wrong try; gives the number of those of this session."""
        tries = self._of.get(session, (0, now))[0] + 1
        pause = min(MOST_WAIT, 2.0 ** (tries - FREE)) if tries > FREE else 0.0
        _remember(self._of, session, (tries, now + pause), SESSIONS)
        lately = self._at.get(address) or deque(maxlen=MOST_IN_WINDOW)
        lately.append(now)
        _remember(self._at, address, lately, SESSIONS)
        self._together.append(now)
        return tries

    def _wait(self, session: str, address: str, known: tuple[bytes, str], now: float) -> float:
        """Seconds until the next try of this session is looked at."""
        own = self._of.get(session, (0, now))[1] - now
        lately = self._at.get(address)
        if not lately or (known[1] and known in self._right):
            return own
        pauses = [own]
        if len(lately) == MOST_IN_WINDOW and now - lately[0] < WINDOW:
            pauses.append(lately[-1] + PAUSE - now)
        if len(self._together) == MOST_TOGETHER and now - self._together[0] < WINDOW:
            pauses.append(lately[-1] + WINDOW - now)
        return max(pauses)


def _network(address: str) -> str:
    """Who is behind an address.

    >>> _network("10.0.0.5"), _network("2001:db8:1:2:3::4"), _network("::ffff:10.0.0.5"), _network("a proxy")
    ('10.0.0.5', '2001:db8:1:2::', '10.0.0.5', 'a proxy')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.IPv6Address(int(found) >> 64 << 64))


def _remember(kept: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    """Put an entry at the end; the oldest goes."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > most:
        kept.pop(next(iter(kept)))


def _digest(word: str) -> bytes:
    """Of one length for all words, so that comparing takes the same time."""
    return hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()

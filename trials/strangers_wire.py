"""What the server answers to requests that none of its pages makes: of other sites or sessions, too large."""

import http.client
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake, WebSocketException

from trials.outcomes import Check
from trials.strangers_people import Listener, Spy

FOREIGN = "http://evil.example"
ROOT = Path(__file__).parent.parent
PATHS = (
    "/.loupe/teacher-secret", "/teacher-secret", "/runs/", "/media/", "/media/../app.py",
    "/media/%2e%2e/app.py",
    "/static/../app.py", "/static/%2e%2e/%2e%2e/app.py", "/app/static/", "/app.py", "/.streamlit/config.toml",
    "/component/x/../../app.py", "/_stcore/bidi-components/../../app.py", "/_stcore/upload_file/",
    "//etc/passwd",
    "/..%2f..%2f..%2fetc/passwd", "/static/%00", "/_stcore/script-health-check", "/_stcore/agent/interact",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What came back: status, headers by lower-case name, body."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(url: str, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
    """One request, its path sent as it is written; a status of 0 if the server hung up."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body or None, named)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, answer.read())
    except (OSError, http.client.HTTPException):
        return Answer(0, {}, b"")
    finally:
        connection.close()


def part(name: str, data: bytes) -> tuple[bytes, str]:
    """A file as a form's only part, and its content type."""
    head = f'--qz9\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    return (
        head.encode() + b"Content-Type: text/plain\r\n\r\n" + data + b"\r\n--qz9--\r\n",
        "multipart/form-data; boundary=qz9",
    )


def put(spy: Spy, session: str, file: str, data: bytes, *, token: bool = True, origin: str = "") -> Answer:
    """Upload a file as a browser does, or, without a token, as another site would."""
    body, kind = part("a.txt", data)
    value = spy.cookie.partition("=")[2]
    headers = {"Content_Type": kind, "Cookie": spy.cookie} | ({"X_Xsrftoken": value} if token else {})
    headers |= {"Origin": origin} if origin else {}
    return ask(spy.url, "PUT", f"/_stcore/upload_file/{session}/{file}", body, **headers)


async def _connects(url: str, cookie: str, token: str, **how: str) -> bool:
    """Whether the socket of a page opens."""
    place = urlsplit(url)
    headers = {"Cookie": cookie} | ({"Host": how["host"]} if "host" in how else {})
    try:
        async with connect(
            f"ws://{place.netloc}/_stcore/stream", origin=how.get("origin", url),  # type: ignore[arg-type]
            subprotocols=["streamlit", token], additional_headers=headers,  # type: ignore[list-item]
            compression=None, open_timeout=60,
        ) as socket:  # fmt: skip
            await socket.send(BackMsg(rerun_script=ClientState()).SerializeToString())
            return bool(await socket.recv())
    except (InvalidHandshake, WebSocketException, OSError):
        return False


async def origins(spy: Spy) -> Check:
    """Sockets from other sites."""
    token = spy.cookie.partition("=")[2]
    foreign = [
        FOREIGN,
        f"{FOREIGN}:8501",
        "null",
        f"http://localhost.{urlsplit(FOREIGN).hostname}",
        "http://",
        "file://",
    ]
    opened = [origin for origin in foreign if await _connects(spy.url, spy.cookie, token, origin=origin)]
    own = await _connects(spy.url, spy.cookie, token)
    seen = (
        f"{len(foreign)} foreign origins tried, opened: {', '.join(opened) or 'none'}; its own opens: {own}"
    )
    return Check("Another site's page can't open a socket to this server", seen, not opened and own)


async def sessions(spy: Spy, other: Listener, limit: int) -> list[Check]:
    """Uploads into another session, without a token, and too large."""
    mine = await spy.listen("tokens")
    guesses = [other.session[:-1] + ("0" if other.session[-1] != "0" else "1"), "0" * 36, "..", "*", "%00"]
    forged = [put(spy, guess, "x", b"hello").status for guess in guesses]
    checks = [
        Check("Nobody uploads into a session without knowing its random id",
              f"{len(guesses)} ids guessed, answers {sorted(set(forged))}",
              all(status in (0, 400, 403, 404) for status in forged)),
        Check("Requests that change something need the token of this site's cookie (XSRF protection)",
              f"without a token {put(spy, mine.session, 'x', b'hello', token=False).status}, "
              f"with it {put(spy, mine.session, 'x', b'hello').status}",
              put(spy, mine.session, "x", b"hello", token=False).status == 403
              and put(spy, mine.session, "x", b"hello").status == 204),
    ]  # fmt: skip
    large = ask(
        spy.url, "PUT", f"/_stcore/upload_file/{mine.session}/y", Cookie=spy.cookie,
        X_Xsrftoken=spy.cookie.partition("=")[2], Content_Length=str((limit + 1) * 1024 * 1024),
    ).status  # fmt: skip
    checks.append(
        Check(
            f"A file above the limit of {limit} MB is refused before it is read",
            f"answer {large}",
            large == 413,
        )
    )
    return checks


def paths(spy: Spy, home: str) -> Check:
    """No file of the program or of the data folder is served, nor a list of any folder."""
    kept = (Path(home) / "teacher-secret").read_bytes().strip()
    program = (ROOT / "app.py").read_bytes()[:60]
    given = []
    for path in PATHS:
        answer = ask(spy.url, "GET", path)
        inside = (
            kept in answer.body
            or program in answer.body
            or b"root:" in answer.body
            or b"Index of" in answer.body
        )
        if inside or answer.status >= 500:
            given.append(f"{path} ({answer.status})")
    seen = f"{len(PATHS)} addresses tried, {', '.join(given) or 'none gave anything'}"
    return Check(
        "No address serves a file of the program or of the data folder, or lists one", seen, not given
    )


def headers(spy: Spy) -> Check:
    """Other sites may not read what this one answers."""
    allowed = []
    for path in ("/", "/_stcore/health", "/_stcore/host-config", "/media/0.txt"):
        answer = ask(spy.url, "GET", path, Origin=FOREIGN)
        if answer.headers.get("access-control-allow-origin") in ("*", FOREIGN):
            allowed.append(path)
    cookie = ask(spy.url, "GET", "/_stcore/health").headers.get("set-cookie", "")
    lax = "SameSite=Lax" in cookie
    seen = f"readable for {FOREIGN}: {', '.join(allowed) or 'nothing'}; SameSite=Lax: {lax}"
    return Check(
        "Other sites can't read this one's answers, and its cookie is sent to it alone",
        seen,
        not allowed and lax,
    )


async def commands(spy: Spy) -> Check:
    """Messages for developers: to shut the server down, to install something, to read about its files."""
    tab = await spy.listen("tokens")
    for name in ("debug_shutdown_runtime", "load_git_info", "set_run_on_save", "stop_script"):
        command = BackMsg()
        setattr(command, name, True)
        await tab.send(command)
    message = BackMsg()
    message.backend_operation_request.request_id = "r"
    message.backend_operation_request.session_id = tab.session
    message.backend_operation_request.install_skills.SetInParent()
    await tab.send(message)
    await tab.send(BackMsg(clear_cache=True))  # only what is computed anew anyway
    await tab.forge()
    told = [m for m in tab.heard if m.WhichOneof("type") == "git_info_changed"]
    about = "; ".join(f"{m.git_info_changed.repository} {m.git_info_changed.branch}" for m in told)
    done = [
        m
        for m in tab.heard
        if m.WhichOneof("type") == "backend_operation_response" and not m.backend_operation_response.error_msg
    ]
    alive = ask(spy.url, "GET", "/_stcore/health").status == 200
    return Check("Messages for developers (shut down, install, repository) have no effect for a stranger",
                 f"server alive: {alive}, told of the repository: {about.strip() or 'nothing'}, "
                 f"installed: {len(done)} times", alive and not about.strip() and not done)  # fmt: skip

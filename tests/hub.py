"""A stand-in of the Hugging Face Hub's HTTP interface on this machine: repositories as commits of files in memory."""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub(ThreadingHTTPServer):
    """Repositories by name: a list of commits, each (name, {path: content}). `asked` are the requests so far."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories, self.asked, self.daemon_threads = {}, [], True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def commit(self, repo: str, files: dict[str, bytes], gone: list[str] = ()) -> str:
        """One more commit, on top of the last one, without those that are gone; returns its name."""
        commits = self.repositories.setdefault(repo, [])
        files = {**(commits[-1][1] if commits else {}), **files}
        files = {path: content for path, content in files.items() if path not in gone}
        name = hashlib.sha1(repr((len(commits), sorted(files.items()))).encode()).hexdigest()
        commits.append((name, files))
        return name

    def files(self, repo: str, revision: str):
        """(name, files) of a commit by its name, or of the last one; None where there is none."""
        commits = self.repositories.get(repo, [])
        found = [one for one in commits if revision in (one[0], "main")]
        return found[-1] if found else None


class Handler(BaseHTTPRequestHandler):
    """As much of the interface as creating, committing to and downloading from a repository of models takes."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status: int, content: bytes = b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def reply_json(self, value):
        self.reply(200, json.dumps(value).encode(), Content_Type="application/json")

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.server.asked.append((self.command, self.path))
        if self.path == "/":
            return self.reply(200)
        tree = re.fullmatch(r"/api/\w+/([\w.-]+/[\w.-]+)/tree/main\?.*", self.path)
        if tree and (found := self.server.files(tree[1], "main")):
            return self.reply_json([{"type": "file", "path": path, "size": 0, "oid": ""} for path in found[1]])
        file = re.fullmatch(r"/([\w.-]+/[\w.-]+)/resolve/([^/]+)/(.+)", self.path)
        found = file and self.server.files(file[1], file[2])
        if not found:
            return self.reply(404, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")
        name, files = found
        if file[3] not in files:
            return self.reply(404, X_Error_Code="EntryNotFound", X_Error_Message="Entry not found", X_Repo_Commit=name)
        content = files[file[3]]
        self.reply(200, content, ETag=f'"{hashlib.sha1(content).hexdigest()}"', X_Repo_Commit=name)

    def do_POST(self):
        self.server.asked.append((self.command, self.path))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        if self.headers.get("Authorization") != "Bearer hf_test":
            return self.reply(401, X_Error_Message="Invalid user token.")
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            repo = f"{asked.get('organization') or 'someone'}/{asked['name']}"
            self.server.repositories.setdefault(repo, [])
            return self.reply_json({"url": f"{self.server.url}/{repo}", "name": repo})
        if self.path == "/api/validate-yaml":
            return self.reply_json({"errors": [], "warnings": []})
        repo, what = re.fullmatch(
            r"/api/(?:models|spaces)/([\w.-]+/[\w.-]+)/(preupload|commit)/main", self.path
        ).groups()
        if what == "preupload":
            files = [file["path"] for file in json.loads(body)["files"]]
            return self.reply_json(
                {"files": [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in files]}
            )
        lines = [json.loads(line) for line in body.splitlines() if line]
        files = {
            line["value"]["path"]: base64.b64decode(line["value"]["content"]) for line in lines if line["key"] == "file"
        }
        gone = [line["value"]["path"] for line in lines if line["key"] == "deletedFile"]
        name = self.server.commit(repo, files, gone)
        self.reply_json({"commitUrl": f"{self.server.url}/{repo}/commit/{name}", "commitOid": name, "hookOutput": ""})


@contextmanager
def serve():
    """A Hub, answering until the end of the block."""
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever, daemon=True)
        thread.start()
        yield hub
        hub.shutdown()
        thread.join()

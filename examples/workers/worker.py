#!/usr/bin/env python3
"""A worker in the Python standard library: claims a step, works on it, keeps its lease, reports.

PLANCTL_SERVER=http://127.0.0.1:7420 PLANCTL_TOKEN=… ./worker.py coder ./my-agent.sh
ONCE=1 ends it after one report.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

SERVER = os.environ["PLANCTL_SERVER"].rstrip("/")


def post(token, path, body):
    """Sends a call until it is answered, which its key makes safe; returns None where there is nothing."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Idempotency-Key": str(uuid.uuid4()),
    }
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), headers, method="POST")
    while True:
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                raise
        except OSError:
            pass  # The daemon is away for a moment.
        time.sleep(2)


def work(claimed, command):
    """Runs the command on the prompt; returns what it said and its status, or None when nobody waits for it."""
    with tempfile.TemporaryFile() as prompt, tempfile.TemporaryFile() as said:
        prompt.write(claimed["prompt"].encode())
        prompt.seek(0)
        process = subprocess.Popen(
            command,
            cwd=claimed["workspace"],
            env={name: value for name, value in os.environ.items() if name != "PLANCTL_TOKEN"},
            stdin=prompt,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        while True:
            try:
                status = process.wait(claimed["heartbeat_seconds"])
                break
            except subprocess.TimeoutExpired:
                if is_over(claimed):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    say_ended(claimed)
                    return None
        said.seek(0)
        return said.read()[-65536:].decode(errors="replace").replace("\0", "?"), status


def is_over(claimed):
    """Renews the lease; says whether the run was stopped or the lease lost."""
    try:
        return post(claimed["token"], f"/v1/items/{claimed['item']}/heartbeat", {})["cancel"]
    except urllib.error.HTTPError as error:
        return error.code in (404, 409)


def say_ended(claimed):
    """Says that nothing of the work goes on: the next run in the workspace waits for that."""
    try:
        post(claimed["token"], f"/v1/items/{claimed['item']}/release", {})
    except urllib.error.HTTPError:
        pass  # It comes too late to give the item back, and is heard.


def main():
    role, command = sys.argv[1], sys.argv[2:]
    while True:
        call = {"roles": [role], "worker": "python"}
        claimed = post(os.environ["PLANCTL_TOKEN"], "/v1/items/claim?wait=30", call)
        if claimed is None:
            continue
        done = work(claimed, command)
        if done is not None:
            report = {"text": done[0], "exit_code": done[1]}
            try:
                print(post(claimed["token"], f"/v1/items/{claimed['item']}/complete", report)["follows"])
                if os.environ.get("ONCE"):
                    return
            except urllib.error.HTTPError as error:
                # It came too late, of a run that was cancelled say; the next step is another matter.
                print(f"not heard: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()

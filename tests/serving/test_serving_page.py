"""The page in headless Chromium: it asks for a token, its values move, and it rolls back."""

import itertools
import json
import shutil
import subprocess
import threading
import time

import pytest
from small_services import rows
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from test_app import Opened

from lamaml.serving.tokens import new_token

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
DRIVER = """<!doctype html><iframe src="/" style="width:1400px;height:1000px"></iframe><script>
const tokens = TOKENS, found = {learned: [], asked: [], errors: []};
const wait = async condition => { for (;;) { const value = condition(); if (value) return value;
  await new Promise(resolve => setTimeout(resolve, 50)); } };
async function drive() {
  const frame = await wait(() => frames[0].document?.getElementById("ask") && frames[0]);
  frame.onerror = message => found.errors.push(message);
  frame.confirm = text => { found.confirmed = text; return true; };
  const at = id => frame.document.getElementById(id);
  const answer = async token => {
    await wait(() => at("ask").open);
    found.asked.push(at("ask-text").textContent);
    at("token").value = token;
    at("ask").querySelector("button:not([type=button])").click();  // the one that Enter presses
  };
  await answer(tokens.read);
  for (let last = "–"; found.learned.length < 3; found.learned.push(last))
    last = await wait(() => at("learned").textContent != last && at("learned").textContent);
  found.score = await wait(() => at("score-100").textContent != "–" && at("score-100").textContent);
  await wait(() => frame.document.querySelector("polyline"));
  found.classes = await wait(() => at("memory").textContent);
  found.widths = [];
  for (const width of [1400, 400]) {
    document.querySelector("iframe").style.width = width + "px";
    await new Promise(resolve => setTimeout(resolve, 100));
    found.widths.push(frame.document.documentElement.scrollWidth);
  }
  (await wait(() => frame.document.querySelector("#versions button"))).click();
  await answer(tokens.admin);
}
drive().catch(error => found.errors.push(String(error))).finally(() =>
  fetch("/driven", {method: "POST", body: JSON.stringify(found)}));
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_page(tmp_path):
    tokens = {role: new_token(role, role) for role in ("read", "admin")}
    opened = Opened(tmp_path / "service", [entry for _, entry in tokens.values()])
    texts = json.dumps({role: token for role, (token, _) in tokens.items()})
    driven, result = threading.Event(), {}

    async def driver(request):
        return HTMLResponse(DRIVER.replace("TOKENS", texts))

    async def finish(request):
        result.update(await request.json())
        driven.set()
        return Response()

    routes = [Route("/driver", driver), Route("/driven", finish, methods=["POST"])]
    opened.app.asgi.router.routes.extend(routes)
    x, y = rows(0, 400)

    def stream():
        for start in itertools.cycle(range(0, 400, 20)):  # however late the browser comes
            opened.service.learn(x[start : start + 20], y[start : start + 20])
            if driven.wait(0.25):
                return

    opened.service.wait(opened.service.learn(x[:50], y[:50]))
    opened.service.snapshot()
    learning = threading.Thread(target=stream)
    learning.start()
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--no-first-run"]
    command += ["--disable-background-networking", "--remote-debugging-port=0"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"http://{opened.host}/driver"]
    try:
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as browser:
            driven.wait(180)
            deadline = time.monotonic() + 30
            while not opened.service.version.monitor.rollbacks and time.monotonic() < deadline:
                time.sleep(0.02)
            browser.terminate()
        assert opened.service.version.monitor.rollbacks == 1
    finally:
        driven.set()
        learning.join()
        opened.close()
    assert result["errors"] == []
    assert len(set(result["learned"])) == 3
    assert result["score"].endswith("%")
    assert "up" in result["classes"]
    assert "down" in result["classes"]
    assert result["widths"] == [1400, 400]
    assert ["read" in result["asked"][0], "admin" in result["asked"][1]] == [True, True]
    assert "Return to version 1?" in result["confirmed"]

"""browser: a headless Chromium that is asked over a pipe; for tests, without other packages."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--remote-debugging-pipe"]
WAIT_SECONDS_MAX = 120


class Browser:
    """One browser with one page. Errors of the page and its requests are collected."""

    def __init__(self):
        self.folder_ = tempfile.mkdtemp(prefix="outcore-page-")
        to_browser, self.out_ = os.pipe()
        self.in_, from_browser = os.pipe()
        # The browser reads descriptor 3 and writes 4; both are above what the shell below needs.
        script = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if program is None:
            raise FileNotFoundError("chromium is not installed: apt-get install chromium")
        self.process_ = subprocess.Popen(
            ["bash", "-c", script, program, *FLAGS, f"--user-data-dir={self.folder_}"],
            pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.rest_, self.number_, self.session_ = b"", 0, None
        self.errors, self.requests, self.events_ = [], [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session_ = self.call("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def close(self):
        self.call("Browser.close")
        self.process_.wait(timeout=30)
        os.close(self.out_)
        os.close(self.in_)
        shutil.rmtree(self.folder_, ignore_errors=True)

    def read_message_(self):
        end = time.monotonic() + WAIT_SECONDS_MAX
        while b"\0" not in self.rest_:
            if not select.select([self.in_], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.in_, 1 << 20)
            if not data:
                raise ConnectionError("the browser has ended")
            self.rest_ += data
        message, self.rest_ = self.rest_.split(b"\0", 1)
        return json.loads(message)

    def note_(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(" ".join(str(a.get("description", a.get("value")))
                                        for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        self.events_.append(method)

    def call(self, method, **params):
        self.number_ += 1
        message = {"id": self.number_, "method": method, "params": params}
        if self.session_ is not None:
            message["sessionId"] = self.session_
        os.write(self.out_, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read_message_()
            if answer.get("id") == self.number_:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note_(answer)

    def size(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def media(self, scheme="light", kind=""):
        self.call("Emulation.setEmulatedMedia", media=kind,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path, is_drawn=True):
        self.errors, self.requests, self.events_ = [], [], []
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while "Page.loadEventFired" not in self.events_:
            self.note_(self.read_message_())
        if is_drawn:
            self.settle()

    def settle(self):
        """Waits until what was asked for is drawn."""
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame("
                 "() => setTimeout(done, 30))))")

    def ask(self, expression):
        """The value of a JavaScript expression, awaited if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description"))
        return answer["result"].get("value")

    def key(self, name):
        """Presses a key; what that draws may come later."""
        for kind in ("rawKeyDown", "keyUp"):
            code = {"Tab": 9, "ArrowRight": 39, "ArrowDown": 40, "ArrowUp": 38}[name]
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                      windowsVirtualKeyCode=code)

    def picture(self, path, height=None):
        """A picture of the whole page, or of its top."""
        width = self.ask("document.documentElement.clientWidth")
        full = self.ask("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": height or full, "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def paper(self):
        """The page as a PDF on A4."""
        data = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True,
                         paperWidth=8.27, paperHeight=11.69)["data"]
        return base64.b64decode(data)

"""Debian's chromium without a window, driven through its debugging pipe; standard library only."""

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import time

#: Each network request of a browser that is set to do nothing by itself would be the page's.
QUIET = (
    "--headless=new", "--no-sandbox", "--no-first-run", "--disable-quic", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
    "--no-default-browser-check", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio",
    "--force-color-profile=srgb", "--disable-features=Translate,OptimizationHints,MediaRouter",
)
WITH_WEBGL = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
WITHOUT_WEBGL = ("--disable-3d-apis",)

KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "ArrowUp": 38, "ArrowDown": 40, "Home": 36, "Tab": 9, "Enter": 13, " ": 32}


class Browser:
    """A chromium process and one page in it."""

    def __init__(self, profile, options=WITH_WEBGL):
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        assert program, "chromium is missing; install it (Debian, Ubuntu: sudo apt-get install chromium)"
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def pipes():  # chromium reads its descriptor 3 and writes to its descriptor 4
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, *QUIET, *options, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        os.set_blocking(self._in, False)
        self._buffer, self._numbers, self.events, self._session = b"", itertools.count(1), [], None
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(item["targetId"] for item in targets if item["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.call(f"{domain}.enable")

    def close(self):
        """End the process."""
        self.process.terminate()
        self.process.wait(20)
        os.close(self._out)
        os.close(self._in)

    def _messages(self, deadline):
        while True:
            while b"\0" in self._buffer:
                message, _, self._buffer = self._buffer.partition(b"\0")
                yield json.loads(message)
            assert time.monotonic() < deadline, "chromium does not answer"
            assert self.process.poll() is None, "chromium has ended"
            try:
                self._buffer += os.read(self._in, 1 << 20)
            except BlockingIOError:
                time.sleep(0.005)

    def call(self, method, timeout=60, **parameters):
        """Return the result of a command of the protocol."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        for answer in self._messages(time.monotonic() + timeout):
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)
        return None

    def run(self, script, timeout=60):
        """Return the value of a JavaScript expression, awaited."""
        answer = self.call("Runtime.evaluate", timeout, expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]["exception"].get("description")
        return answer["result"].get("value")

    def do(self, script):
        """Run JavaScript statements, and wait until what they change is drawn."""
        self.run(f"{script}\n;undefined")
        self.settle()

    def set(self, selector, value):
        """Choose an option of a list."""
        self.do(f"{{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)}; "
                "e.dispatchEvent(new Event('change')); }")

    def open(self, path, size=(800, 480), scheme="light", wait=True):
        """Load a file and wait until the page says that it is ready."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1,
                  mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait("document.readyState === 'complete'")
        if not wait:
            return
        self.wait("window.vmdpotential && window.vmdpotential.ready")
        self.run("window.vmdpotential.ready.then(() => window.vmdpotential.complete)")
        self.settle()

    @contextlib.contextmanager
    def before_pages(self, script):
        """Run JavaScript in every page before its own scripts."""
        number = self.call("Page.addScriptToEvaluateOnNewDocument", source=script)["identifier"]
        try:
            yield
        finally:
            self.call("Page.removeScriptToEvaluateOnNewDocument", identifier=number)

    @contextlib.contextmanager
    def frame(self):
        """Turn to the frame in the page, which has a process of its own."""
        self.wait("document.querySelector('iframe')")
        for _ in range(200):
            targets = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "iframe"]
            if targets:
                break
            time.sleep(0.05)
        outer = self._session
        target = targets[0]["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log"):
            self.call(f"{domain}.enable")
        try:
            yield self
        finally:
            self._session = outer

    def wait(self, condition, seconds=30):
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.03)

    def settle(self):
        """Wait until what was asked for is made and drawn."""
        drawn = "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));"
        self.run(f"(async () => {{ {drawn} await window.vmdpotential?.idle?.(); {drawn} }})()")

    def requests(self):
        """Return the addresses that the page asked for, without the file itself and what it holds."""
        urls = [event["params"]["request"]["url"] for event in self.events
                if event["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("data:", "blob:"))]

    def problems(self):
        """Return what the console printed: errors, warnings and exceptions."""
        results = []
        for event in self.events:
            details = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                results.append(details["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif event["method"] == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
                results.append(details["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning", "assert"):
                results.append(" ".join(str(a.get("value", a.get("description"))) for a in details["args"]))
        # the graphics driver of a machine without a graphics card
        return [text for text in results if "GPU stall due to ReadPixels" not in text and "WebGL-0x" not in text]

    def box(self, selector):
        """Return x, y, width, height of an element in the window, scrolled into sight."""
        return self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
                        "e.scrollIntoView({block: 'nearest'}); const r = e.getBoundingClientRect(); "
                        "return [r.x, r.y, r.width, r.height]; })()")

    def mouse(self, kind, x, y):
        """Send a mouse event: mousePressed, mouseMoved or mouseReleased."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1,
                  buttons=0 if kind == "mouseReleased" else 1)

    def hover(self, x, y):
        """Move the mouse, with no button pressed."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="none", buttons=0)
        self.settle()

    def click(self, selector, at=(0.5, 0.5)):
        """Press and release the mouse on an element."""
        x, y, width, height = self.box(selector)
        x, y = x + width * at[0], y + height * at[1]
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)
        self.settle()

    def drag(self, start, end, steps=5):
        """Drag the mouse from a point to another."""
        self.mouse("mousePressed", *start)
        for n in range(1, steps + 1):
            self.mouse("mouseMoved", *(a + (b - a) * n / steps for a, b in zip(start, end, strict=True)))
        self.mouse("mouseReleased", *end)
        self.settle()

    def press(self, key, times=1):
        """Press a key."""
        for _ in range(times):
            about = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0].upper()))}
            if key in ("Enter", " ") or len(key) == 1:
                about["text"] = "\r" if key == "Enter" else key
            self.call("Input.dispatchKeyEvent", type="keyDown", **about)
            self.call("Input.dispatchKeyEvent", type="keyUp", **about)
        self.settle()

    def picture(self):
        """Return a screenshot, PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

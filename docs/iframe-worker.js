// Browsers start no worker of a page that was opened from a folder (file:). The search of the site
// needs one: here it is a frame, which shows its script the same functions. Elsewhere nothing
// changes. (The theme asks for `IFrameWorker` by this name.)
if (location.protocol === "file:") {
  window.IFrameWorker = class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inner = frame.contentWindow;
      this.inner.document.open();
      this.inner.document.write("<!doctype html><title>search</title>");
      this.inner.document.close();
      this.inner.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inner.document.createElement("script");
      script.src = url;
      script.onload = () => this.waiting.splice(0).forEach((data) => this.hand(data));
      script.onerror = () => this.dispatchEvent(new ErrorEvent("error"));
      this.isLoaded = false;
      script.addEventListener("load", () => (this.isLoaded = true));
      this.inner.document.body.appendChild(script);
    }
    hand(data) {
      this.inner.dispatchEvent(new MessageEvent("message", { data }));
    }
    postMessage(data) {
      if (this.isLoaded) this.hand(data);
      else this.waiting.push(data);
    }
    terminate() {}
  };
  window.Worker = window.IFrameWorker;
}

// Keeps a page up to date, and gives it keys. Everything works without this script.
(() => {
  "use strict";
  const live = document.body.dataset.live;
  const connection = document.getElementById("connection");
  const freshness = document.getElementById("freshness");
  const RETRY_SECONDS = 5;
  let stream, retry;

  const say = (words) => { if (connection.textContent !== words) connection.textContent = words; };

  // Details that a reader opened or closed stay so.
  const keepDetails = (old, fresh) => {
    for (const details of old.querySelectorAll("details[id]")) {
      const same = fresh.querySelector(`#${CSS.escape(details.id)}`);
      if (same) same.open = details.open;
    }
  };

  const replace = (html) => {
    const box = document.createElement("template");
    box.innerHTML = html;
    const fresh = box.content.firstElementChild;
    const old = fresh && document.getElementById(fresh.id);
    if (!old) return;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const link = focused && focused.getAttribute("href");
    keepDetails(old, fresh);
    const scrolled = [...old.querySelectorAll(".wide")].map((wide) => wide.scrollLeft);
    old.replaceWith(fresh);
    fresh.querySelectorAll(".wide").forEach((wide, at) => { wide.scrollLeft = scrolled[at] ?? 0; });
    if (!focused) return;
    const again = (focused.id && document.getElementById(focused.id))
      || (link && fresh.querySelector(`a[href="${CSS.escape(link)}"]`));
    if (again) again.focus({ preventScroll: true });
  };

  const connect = () => {
    clearTimeout(retry);
    stream = new EventSource(live);
    stream.addEventListener("open", () => say(""));
    stream.addEventListener("part", (event) => replace(event.data));
    stream.addEventListener("title", (event) => {
      const box = document.createElement("template");
      box.innerHTML = event.data;
      document.title = box.content.textContent;
    });
    stream.addEventListener("at", (event) => {
      const time = freshness.querySelector("time");
      time.dateTime = event.data;
      time.textContent = event.data.slice(11, 19);
    });
    stream.addEventListener("signed-out", () => {
      stream.close();
      say("Your session is over: sign in again to see what happens.");
    });
    stream.addEventListener("error", () => {
      stream.close();
      say(`Live updates lost, trying again every ${RETRY_SECONDS} s; this page is from ${freshness.querySelector("time").textContent} UTC.`);
      if (!document.hidden) retry = setTimeout(connect, RETRY_SECONDS * 1000);
    });
  };

  if (live && window.EventSource) {
    if (!document.hidden) connect();
    // A tab that nobody sees costs the daemon nothing.
    document.addEventListener("visibilitychange", () => {
      clearTimeout(retry);
      if (stream) stream.close();
      if (!document.hidden) connect();
    });
  }

  const rows = () => [...document.querySelectorAll("main .row-head a, main .list tbody th a, main summary")];
  const step = (by) => {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
    all[next].focus();
  };
  // j and k go along the rows; h goes home. Nothing happens while somebody types, and `planctl.keys = off` in the storage of
  // the page switches them off.
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem("planctl.keys") === "off") return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "h") location.href = "/";
  });

  // A finding leads to its line within the text.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-line]");
    const text = link && document.querySelector("textarea#text");
    if (!text) return;
    event.preventDefault();
    const lines = text.value.split("\n");
    const at = Number(link.dataset.line) - 1;
    const from = lines.slice(0, at).reduce((sum, line) => sum + line.length + 1, 0);
    text.focus();
    text.setSelectionRange(from, from + (lines[at] ?? "").length);
    text.scrollTop = (text.scrollHeight / lines.length) * Math.max(0, at - 5);
  });

  // A form is sent once, however often its button is clicked.
  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent;
  });

  // A picture that is wider than the screen begins with what is under way.
  const graph = document.querySelector(".graph");
  const now = graph && graph.querySelector(".waiting, .current, .failed");
  if (now && graph.scrollWidth > graph.clientWidth) {
    const [box, frame] = [now.getBoundingClientRect(), graph.getBoundingClientRect()];
    graph.scrollLeft = box.left + box.width / 2 - frame.left - frame.width / 2;
  }

  const refused = document.getElementById("refused");
  if (refused) refused.focus();
})();

// Drives the page in a real Chromium: `just page`. The first argument is the planctl to test; pictures go into the folder that
// the second one names. It stops at the first thing that is wrong.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";
import { HtmlValidate } from "html-validate";
import { chromium } from "playwright-core";

const [planctl, pictures] = process.argv.slice(2).map((given) => path.resolve(given));
const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const validator = new HtmlValidate({
  extends: ["html-validate:standard"],
  // Void elements and attributes are written as HTML 5 allows them; the layout leaves blanks at the ends of lines.
  rules: { "no-trailing-whitespace": "off", "no-inline-style": "error", "long-title": "off", "no-implicit-button-type": "off" },
});
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

// A place of its own: workspaces, a home, a state directory with a private Postgres.
const place = fs.mkdtempSync(path.join(os.tmpdir(), "planctl-page-"));
fs.chmodSync(place, 0o755);
fs.mkdirSync(pictures, { recursive: true });
const environment = {
  PATH: "/usr/local/bin:/usr/bin:/bin",
  HOME: path.join(place, "home"),
  PLANCTL_STATE_DIR: path.join(place, "state"),
  PLANCTL_ACTOR: "ann",
};
fs.mkdirSync(environment.HOME);
const run = (folder, ...words) => {
  const said = spawnSync(planctl, words, { cwd: path.join(place, folder), env: environment, encoding: "utf8", maxBuffer: 64 << 20 });
  return { code: said.status, out: said.stdout, err: said.stderr };
};
const must = (folder, ...words) => {
  const said = run(folder, ...words);
  assert.equal(said.code, 0, `planctl ${words.join(" ")}: ${said.err}`);
  return said.out;
};
const workspace = (name, files) => {
  fs.mkdirSync(path.join(place, name));
  for (const [file, text] of Object.entries(files)) fs.writeFileSync(path.join(place, name, file), text);
  const who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"];
  for (const words of [["init"], ["add", "."], [...who, "commit", "--message", "start"]]) {
    execFileSync("git", words, { cwd: path.join(place, name), stdio: "ignore" });
  }
  return name;
};
const plan = (title, steps) =>
  `---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# ${title}\n\n**Budget:** 600 minutes\n\n## Steps\n${steps
    .map(([name, contract, more = ""], at) => `\n### ${at + 1}. ${name}\n\n**target:** coder\n\n**task:** ${name}.\n\n**contract:**\n\`\`\`bash\n${contract}\n\`\`\`\nexit_code == 0\n${more}`)
    .join("")}`;
const until = async (what, look, seconds = 60) => {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
    const found = await look();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.fail(`not within ${seconds} s: ${what}`);
};
// A server of tools with one tool, which writes a line.
const tools = `const note = { name: "note", description: "Writes a line", inputSchema: { type: "object", properties: { line: { type: "string" } }, required: ["line"] } };
for await (const text of (await import("node:readline")).createInterface({ input: process.stdin })) {
  const asked = JSON.parse(text);
  if (asked.id === undefined) continue;
  const result = {
    initialize: () => ({ protocolVersion: asked.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "notes", version: "1" } }),
    "tools/list": () => ({ tools: [note] }),
    "tools/call": () => ({ content: [{ type: "text", text: "noted " + asked.params.arguments.line }] }),
  }[asked.method]?.() ?? {};
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id: asked.id, result }) + "\\n");
}
`;
const state = (folder, name) => JSON.parse(must(folder, "status", name, "--json")).state;

const escalates = plan("Stop the login from timing out", [
  ["Reproduce the timeout", "test -e start"],
  ["Write the fix", "cat log >&2; test -e right", "**on_fail:** retry(1), then escalate\n"],
  ["Describe the change", "test -e right"],
]);
const log = Array.from({ length: 80 }, (_, at) => `test ${at} … ok`).join("\n") + "\nFAILED test_refresh: 401 != 200\n";

let browser;
try {
  must("home", "daemon", "start");
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  const link = () => JSON.parse(must("home", "open", "--json")).url;
  const base = new URL(link()).origin;
  const wrong = [];
  const watch = (page) => {
    page.on("console", (message) => message.type() === "error" && wrong.push(`${page.url()}: ${message.text()}`));
    page.on("pageerror", (error) => wrong.push(`${page.url()}: ${error.message}`));
    return page;
  };
  const signedIn = async (options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
    context.setDefaultTimeout(120_000);
    const page = watch(await context.newPage());
    await page.goto(link());
    assert.equal(page.url(), `${base}/`);
    return page;
  };
  let screens = 0;
  // Looks at a page with machines' eyes, and takes a picture for people's.
  const look = async (page, name, address) => {
    const answer = address ? await page.goto(base + address) : await page.reload();
    await examine(page, name, await answer.text());
  };
  // Looks at a page that answered a form, which is not sent again.
  const lookAtAnswer = async (page, name) => examine(page, name, await page.content());
  const examine = async (page, name, html) => {
    const report = await validator.validateString(html);
    const found = report.results.flatMap((result) => result.messages.map((one) => `${one.line}: ${one.ruleId} ${one.message}`));
    assert.deepEqual(found, [], `${name} is valid HTML`);
    assert.ok(html.length < 60 * 1024, `${name} has ${html.length} bytes`);
    await page.evaluate(axe);
    const { violations } = await page.evaluate((only) => globalThis.axe.run(document, { runOnly: only }), RULES);
    assert.deepEqual(violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html)}`), [], `${name} is accessible`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} fits its width`);
    await page.screenshot({ path: path.join(pictures, `${name}.png`), fullPage: true });
    screens += 1;
  };

  // Empty, signed out, wrong.
  const ann = await signedIn();
  await look(ann, "empty", "/");
  await look(ann, "empty-runs", "/runs");
  await look(ann, "error", "/runs/nothing-1");
  wrong.length = 0; // The 404 itself is told to the console.
  const stranger = watch(await (await browser.newContext()).newPage());
  await look(stranger, "sign-in", "/sign-in");

  // A plan is approved from the page alone; the run's page follows it without being loaded again.
  workspace("login", { "auth.md": escalates, log, "work.sh": "echo I did it; touch start\n" });
  assert.equal(run("login", "run", "auth.md", "-d", "--exec", "bash work.sh").code, 3);
  await ann.goto(base);
  await ann.getByRole("link", { name: "Approve auth.md?" }).click();
  await look(ann, "ask-plan");
  await ann.getByRole("radio", { name: "approve" }).check();
  await ann.getByRole("button", { name: "Decide as ann" }).click();
  await ann.getByText("Recorded: approve").waitFor();
  await ann.getByRole("link", { name: "answer the escalation" }).waitFor({ timeout: 60_000 });
  console.log("ok: a plan is approved, and its run followed live");

  // The graph lights up while its page stays open.
  workspace("lights", { "lights.md": plan("Lights", [["First", "test -e go"], ["Second", "test -e go"]]), "work.sh": "while ! [ -e go ]; do sleep 0.1; done\n" });
  must("lights", "run", "lights.md", "--approve", "-d", "--exec", "bash work.sh");
  await ann.goto(`${base}/runs/lights-1/graph`);
  await ann.locator("svg .node.task.current").waitFor();
  fs.writeFileSync(path.join(place, "lights", "go"), "");
  await ann.waitForFunction(() => document.querySelectorAll("svg .node.task.done").length === 2, undefined, { timeout: 60_000 });
  console.log("ok: the graph lights up as its run goes on");

  // A run that fails by itself needs somebody, until that is acknowledged; its whole evidence is downloaded, and is sound.
  workspace("red", { "red.md": plan("Fail the test", [["Fail", "echo 'FAILED test_sum: 1 != 2' >&2; test -e never", "**on_fail:** abort\n"]]), "here": "" });
  must("red", "run", "red.md", "--approve", "-d", "--exec", "true");
  await until("it has failed", () => state("red", "red-1") === "failed");
  await look(ann, "home-failure", "/");
  await ann.getByRole("link", { name: "red-1 has failed" }).click();
  await ann.getByRole("heading", { name: "Steer the run" }).waitFor();
  await look(ann, "run-failed");
  const [file] = await Promise.all([ann.waitForEvent("download"), ann.getByRole("link", { name: "Download its whole evidence" }).click()]);
  await file.saveAs(path.join(place, "red", "red-1.jsonl"));
  must("red", "audit", "red-1.jsonl");
  await ann.goto(base);
  await ann.getByRole("button", { name: "Acknowledge that red-1 has failed" }).click();
  await ann.getByText("Recorded: the failure is acknowledged.").waitFor();
  assert.ok(!(await ann.textContent("#needs-you")).includes("red-1"));
  console.log("ok: a failure is acknowledged, and its evidence downloaded");

  // A plan runs from its page, first once it is approved; the page says how, and who approved its text.
  workspace("menu", { "menu.md": plan("Write the menu", [["Write the menu", "test -e menu"]]), "planctl.toml": "[roles.coder]\nagent = \"exec:touch menu\"\n" });
  must("menu", "trust", ".");
  must("menu", "approve", "menu.md", "--note", "as we said");
  await ann.goto(`${base}/plans`);
  await ann.getByRole("link", { name: "menu.md" }).click();
  await ann.getByText("approved by ann").waitFor();
  await look(ann, "plan-to-run");
  await ann.getByRole("button", { name: "Run this text" }).click();
  await ann.getByText("Recorded: the plan runs.").waitFor();
  await until("it is done", () => state("menu", "menu-1") === "done");
  console.log("ok: a plan runs from its page");

  // A plan is drafted from its goal: followed while it is written, and shown with what proves the goal, on its plan's page, too.
  const drafted = {
    title: "A json flag", context: "", confidence: 0.9, questions: [], requirements: [{ id: "R1", steps: [1], quote: null }],
    steps: [{ title: "Print JSON", role: "coder", task: "Teach `app.sh` the flag --json, which prints an object.", contract: "bash app.sh --json | grep -q '^{'", exit_code: 0, changes: ["app.sh"], reads: ["app.sh"], needs: [] }],
  };
  const goes = path.join(place, "goes");
  workspace("flag", {
    "app.sh": "#!/bin/bash\necho hello\n", "answer.json": JSON.stringify(drafted),
    "writer.sh": `cat > /dev/null; while ! [ -e ${goes} ]; do sleep 0.1; done; cat answer.json\n`,
    "planctl.toml": "[roles.coder]\nagent = \"exec:bash writer.sh\"\n",
  });
  must("flag", "trust", ".");
  const drafts = `/drafts?project=${encodeURIComponent(path.join(place, "flag"))}`;
  await ann.goto(base + drafts);
  await ann.getByLabel("The goal, in your words").fill("Add a --json flag to app.sh");
  await ann.getByLabel("Writer").selectOption("agent exec:bash writer.sh");
  await ann.getByRole("button", { name: "Draft it" }).click();
  await ann.getByText("drafts …").waitFor();
  const draft = new URL(ann.url()).pathname;
  await look(ann, "draft-working");
  fs.writeFileSync(goes, "");
  await ann.getByText("Nobody has approved it.").waitFor();
  await look(ann, "draft-written");
  await ann.getByRole("link", { name: "plans/a-json-flag.md" }).click();
  await ann.getByRole("heading", { name: "Drafted for a goal" }).waitFor();
  await look(ann, "plan-drafted");
  console.log("ok: a plan is drafted from its goal, and followed live");

  // A prompt that is to be sent is read and refused from its page alone; its draft says so, and what to do.
  workspace("asks", { "app.sh": "echo hello\n", "planctl.toml": "[models.m]\napi = \"chat\"\nurl = \"http://127.0.0.1:9\"\nmodel = \"m-large\"\nask = true\n" });
  must("asks", "trust", ".");
  const begin = async (folder, writer) => {
    await ann.goto(`${base}/drafts?project=${encodeURIComponent(path.join(place, folder))}`);
    await ann.getByLabel("The goal, in your words").fill("Add a --json flag to app.sh");
    await ann.getByLabel("Writer").selectOption(writer);
    await ann.getByRole("button", { name: "Draft it" }).click();
    await ann.waitForURL(/\/drafts\/\w+$/);
    return new URL(ann.url()).pathname;
  };
  const asking = await begin("asks", "model m");
  await ann.getByText("waits for your approval").first().waitFor();
  await look(ann, "draft-waiting", asking);
  await ann.getByRole("link", { name: /^prompt/ }).click();
  await look(ann, "ask-prompt");
  await ann.getByRole("radio", { name: /^reject/ }).check();
  await ann.getByRole("textbox", { name: /^Note/ }).fill("Leave out the key.");
  await ann.getByRole("button", { name: "Decide as ann" }).click();
  await ann.getByText(/^Recorded:/).waitFor();
  await ann.goto(base + asking);
  await ann.getByRole("button", { name: "Go on where it was" }).click();
  await ann.getByText("a draft that starts from scratch has a new prompt").waitFor();
  await look(ann, "draft-refused");
  // So is what a draft of a goal asks: may an agent write a program?
  const body = JSON.stringify({
    place: { workspace: path.join(place, "asks"), config: null }, key: "draft-1", begun: "b", goal: "Count the words of each file",
    asks: [{ slot: "I1", question: { kind: "synthesis", text: "Write the program `tools/count`, which counts the words of a file." } }],
  });
  const opened = await new Promise((done, failed) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body), "idempotency-key": "synthesis" };
    const call = { socketPath: path.join(environment.PLANCTL_STATE_DIR, "daemon.sock"), path: "/v1/drafts/asks", method: "POST", headers };
    http.request(call, async (answer) => done(JSON.parse((await answer.toArray()).join("")))).on("error", failed).end(body);
  });
  await look(ann, "ask-synthesis", `/asks/${opened.asks[0].id}`);
  await ann.getByRole("radio", { name: /^approve/ }).check();
  await ann.getByRole("button", { name: "Decide as ann" }).click();
  await ann.getByText(/^Recorded:/).waitFor();
  console.log("ok: a prompt and a synthesis are answered from their pages");

  // Every screen, as everybody sees it.
  await ann.goto(`${base}/runs/auth-1`);
  const ask = await ann.getByRole("link", { name: "answer the escalation" }).getAttribute("href");
  const shown = {
    home: "/", filtered: "/?kind=escalation", ask, edit: `${ask}/edit`, run: "/runs/auth-1", history: "/runs/auth-1/history",
    step: "/runs/auth-1/steps/2", output: "/runs/auth-1/steps/2/attempts/1/stderr", graph: "/runs/auth-1/graph", timeline: "/runs/auth-1/timeline",
    runs: "/runs", waiting: "/runs?state=waiting",
    prompt: "/runs/auth-1/steps/2/attempts/1/prompt", plans: "/plans", plan: "/plans/1", library: "/library?message=fix+the+bug", system: "/system",
    machine: "/system/doctor", drafts, draft,
  };
  for (const [name, address] of Object.entries(shown)) await look(ann, name, address);
  const looks = {
    phone: { viewport: { width: 360, height: 740 } },
    dark: { colorScheme: "dark" },
    forced: { forcedColors: "active" },
  };
  for (const [name, options] of Object.entries(looks)) {
    const page = await signedIn(options);
    for (const screen of ["home", "ask", "edit", "run", "history", "step", "output", "graph", "timeline", "waiting", "plan", "library", "system", "machine", "drafts", "draft"]) await look(page, `${screen}-${name}`, shown[screen]);
    await page.context().close();
  }
  console.log(`ok: ${screens} screens: valid, accessible, within 60 KB; pictures in ${pictures}`);

  // Without script: the failing output is there, and a retry needs its note.
  const plain = await signedIn({ javaScriptEnabled: false });
  await plain.goto(base + ask);
  await plain.getByText("FAILED test_refresh: 401 != 200").first().waitFor();
  await plain.getByRole("radio", { name: /^retry/ }).check();
  await plain.getByRole("button", { name: "Decide as ann" }).click();
  await plain.getByText("retry needs a note").waitFor();

  // Two tabs decide at once: one is recorded, the other is told by whom, and keeps nothing to send twice.
  const other = await signedIn();
  await other.goto(base + ask);
  await other.getByRole("radio", { name: /^waive/ }).check();
  await other.getByRole("textbox", { name: /^Note/ }).fill("good enough");
  fs.writeFileSync(path.join(place, "login", "right"), "");
  await plain.getByRole("textbox", { name: /^Note/ }).fill("Mind the clock.");
  await Promise.all([
    plain.getByRole("button", { name: "Decide as ann" }).click(),
    other.getByRole("button", { name: "Decide as ann" }).click(),
  ]);
  const told = await until("one decision is told of the other", async () => {
    const texts = [await plain.textContent("main"), await other.textContent("main")];
    const late = texts.filter((text) => text.includes("This changed while you were reading")).length;
    const first = texts.filter((text) => /Recorded: (retry|waive)/.test(text)).length;
    return late === 1 && first === 1;
  });
  assert.ok(told);
  wrong.length = 0; // The 409 itself is told to the console.
  await until("the run is done", () => state("login", "auth-1") === "done");
  console.log("ok: without script a retry needs its note; of two tabs one decides");

  // The plan of a run that waits is edited: broken, mended, compared, approved. With script a finding leads to its line.
  const held = async (folder, name, text, worker, files = {}) => {
    workspace(folder, { [`${name}.md`]: text, ...files });
    if (files["planctl.toml"]) must(folder, "trust", ".");
    const said = run(folder, "run", `${name}.md`, "--approve", "-d", "--exec", worker);
    assert.equal(said.code, 0, said.err);
    const view = await until(`${name} waits`, () => {
      const view = JSON.parse(must(folder, "status", `${name}-1`, "--json"));
      return view.state === "waiting" && view.waiting_on?.id ? view : null;
    });
    return `/asks/${view.waiting_on.id}`;
  };
  const clock = await held("clock", "clock", plan("Mend the clock", [["Mend the clock", "test -e never", "**on_fail:** escalate\n"]]), "true", { here: "" });
  const editor = await signedIn();
  await editor.goto(base + clock);
  await editor.getByRole("link", { name: "edit the plan" }).click();
  const text = editor.getByRole("textbox", { name: "The plan's text" });
  const original = await text.inputValue();
  await text.fill(original.replace("**contract:**", "**kontract:**"));
  await editor.getByRole("button", { name: "Check and compare" }).click();
  await editor.getByText("It can't be approved yet").waitFor();
  await lookAtAnswer(editor, "edit-broken");
  await editor.setViewportSize({ width: 360, height: 740 });
  await editor.emulateMedia({ colorScheme: "dark" });
  assert.ok(await editor.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the margin fits a phone");
  await editor.screenshot({ path: path.join(pictures, "edit-broken-phone-dark.png"), fullPage: true });
  await editor.emulateMedia({ colorScheme: null });
  await editor.setViewportSize({ width: 1200, height: 900 });
  const line = editor.locator("a[data-line]").first();
  await line.click();
  const chosen = await editor.evaluate(() => {
    const text = document.getElementById("text");
    return text.value.slice(0, text.selectionStart).split("\n").length;
  });
  assert.equal(chosen, Number(await line.getAttribute("data-line")));
  await text.fill(original.replace("test -e never", "test -e here"));
  await editor.getByRole("button", { name: "Check and compare" }).click();
  await editor.getByText("It is verified").waitFor();
  await lookAtAnswer(editor, "edit-compared");
  await editor.getByRole("button", { name: "Approve as ann" }).click();
  await editor.getByText("the changed plan is approved").waitFor();
  await until("the edited run is done", () => state("clock", "clock-1") === "done");
  assert.match(fs.readFileSync(path.join(place, "clock", "clock.md"), "utf8"), /test -e here/);
  console.log("ok: a plan is edited, checked, compared and approved");

  // Every other kind of ask, answered from its page.
  const report = (result) => `cat > "$PLANCTL_RESULT_FILE" <<'END'\n${JSON.stringify({ planctl: "result/1", ...result })}\nEND`;
  const between = "### Between\n\n**target:** coder\n**task:** do it\n**contract:**\n\n```shell\ntest -e done-2\n```\n\nexit_code == 0";
  const choice = "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Names\n\n## Steps\n\n### 1. Keep the old names?\n\n**type:** human\n**task:**\nShall they stay?\n\n### 2. Add aliases\n\n**type:** call\n**contract:**\n```bash\ntouch aliases\n```\nexit_code == 0\n\n### 3. Drop them\n\n**type:** call\n**contract:**\n```bash\ntouch dropped\n```\nexit_code == 0\n\n## Flow\n\n- 1 -> 2 \"Keep the old names\"\n- 1 -> 3 \"Drop\"\n- 2 -> done\n";
  const kinds = {
    budget: {
      text: plan("Spend", [["One", "test -e done-1"], ["Two", "test -e done-2"]]).replace("600 minutes", "max 1500 tokens, 5 minutes"),
      worker: `touch done-$PLANCTL_STEP; ${report({ text: "ok", usage: { input_tokens: 900, output_tokens: 100 } })}`,
      answer: async (page) => {
        await page.getByRole("radio", { name: /^raise/ }).check();
        await page.getByRole("textbox", { name: "Tokens" }).fill("2000");
      },
    },
    question: {
      text: plan("Ask", [["One", "grep -qx blue colour"]]),
      worker: "bash work.sh",
      files: { "work.sh": `case $(cat) in *blue*) echo blue > colour;; *) ${report({ outcome: "needs_input", question: "Which colour?" })}\n;; esac\n` },
      answer: async (page) => {
        await page.getByRole("radio", { name: /^answer/ }).check();
        await page.getByRole("textbox", { name: /^Note/ }).fill("Take blue.");
      },
    },
    choice: {
      text: choice,
      worker: "true",
      answer: async (page) => {
        await page.getByRole("radio", { name: /^Drop/ }).check();
        await page.getByRole("radio", { name: /^go on/ }).check();
      },
    },
    insertion: {
      text: plan("Two files", [["One", "test -e done-1"], ["Two", "test -e done-3 || test -e done-2"]]),
      worker: `touch done-$PLANCTL_STEP; [ $PLANCTL_STEP = 1 ] || exit 0; [ -e said ] && exit 0; touch said\n${report({ text: "A third is needed.", insert_step: between })}`,
      answer: async (page) => page.getByRole("radio", { name: /^put it in/ }).check(),
    },
    effect: {
      text: "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Note it\n\n## Steps\n\n### 1. Write the line\n\n**type:** call\n**task:**\nWrite it.\n**server:** notes\n**tool:** note\n**arguments:**\n- line: hello\n",
      worker: "true",
      files: {
        "server.mjs": tools,
        "planctl.toml": `[servers.notes]\ncommand = [${JSON.stringify(process.execPath)}, ${JSON.stringify(path.join(place, "effect", "server.mjs"))}]\neffects = ["write"]\n\n[notify.hook]\nto = "exec"\ncommand = "true"\n`,
      },
      answer: async (page) => {
        await page.getByText("planctl tool call notes note").first().waitFor();
        await page.getByRole("radio", { name: /^approve/ }).check();
      },
    },
    tampered: {
      text: plan("Cheat", [["One", "bash check.sh", "**on_fail:** escalate\n"]]),
      worker: "if [ -e tried ]; then touch done-1; else touch tried; echo true > check.sh; fi",
      files: { "check.sh": "test -e done-1\n" },
      answer: async (page) => page.getByRole("radio", { name: /^restore/ }).check(),
    },
  };
  for (const [kind, { text, worker, files, answer }] of Object.entries(kinds)) {
    const address = await held(kind, kind, text, worker, files);
    await look(editor, `ask-${kind}`, address);
    await answer(editor);
    await editor.getByRole("button", { name: "Decide as ann" }).click();
    await editor.getByText(/^Recorded:/).waitFor();
    await until(`${kind} is done`, () => state(kind, `${kind}-1`) === "done");
  }
  // The ask of that project was told on its channel, and is told once more from the page.
  await until("the message is delivered", async () => {
    await editor.goto(`${base}/system`);
    return (await editor.getByRole("row", { name: /approval\.opened/ }).first().textContent()).includes("delivered");
  });
  await look(editor, "system-messages", "/system");
  await editor.getByRole("button", { name: /^Again/ }).last().click();
  await editor.getByText("Recorded: the message is sent again.").waitFor();
  await editor.context().close();
  console.log(`ok: answered from their pages: ${Object.keys(kinds).join(", ")}`);

  // A tab that stays open follows run after run, and does not grow.
  workspace("long", { "many.md": plan("Many small steps", Array.from({ length: 60 }, (_, at) => [`Step ${at + 1}`, "true && test -e here"])), here: "" });
  const open = await signedIn();
  const session = await open.context().newCDPSession(open);
  const heap = async () => {
    await session.send("HeapProfiler.collectGarbage");
    return (await session.send("Runtime.getHeapUsage")).usedSize / 1e6;
  };
  const updates = () => open.evaluate(() => globalThis.updates ?? 0);
  await open.evaluate(() => {
    globalThis.updates = 0;
    new MutationObserver(() => (globalThis.updates += 1)).observe(document.getElementById("main"), { childList: true });
  });
  const before = await heap();
  must("long", "run", "many.md", "--approve", "-d", "--exec", "true");
  await until("the long run is done", () => state("long", "many-1") === "done", 300);
  await open.getByRole("link", { name: "many-1" }).waitFor();
  await until("home shows its end", async () => (await open.textContent("#ended")).includes("60/60"));
  const after = await heap();
  assert.ok(after < 50 && after < before + 5, `the heap went from ${before} to ${after} MB`);
  console.log(`ok: ${await updates()} updates in one tab; its heap went from ${before.toFixed(1)} to ${after.toFixed(1)} MB`);

  // The same tab after an hour with an update each second, which is sent at once: 3,600 of them.
  const HOUR = 3600;
  const row = await open.evaluate(() => document.getElementById("running").outerHTML.replaceAll("\n", " "));
  const news = Array.from({ length: HOUR }, (_, at) => `event: part\ndata: ${row.replace("Under way", `Under way, ${at}`)}\n\nevent: at\ndata: 2026-01-01T00:00:00Z\n\n`);
  await open.route("**/live?*", (route) => route.fulfill({ contentType: "text/event-stream", body: news.join("") }));
  await open.goto(base);
  await until("an hour has passed", async () => (await open.textContent("#running")).includes(`Under way, ${HOUR - 1}`));
  await open.unroute("**/live?*");
  const [hour, nodes] = [await heap(), await open.evaluate(() => document.querySelectorAll("*").length)];
  assert.ok(hour < 50 && hour < before + 10, `the heap went from ${before} to ${hour} MB in an hour`);
  assert.ok(nodes < 1000, `${nodes} elements`);
  wrong.length = 0; // The end of the stream is told to the console.
  console.log(`ok: an hour with ${HOUR} updates leaves ${nodes} elements and a heap of ${hour.toFixed(1)} MB`);

  // The keyboard alone.
  await open.reload();
  await open.keyboard.press("j");
  assert.equal(await open.evaluate(() => document.activeElement.closest(".row") !== null), true);
  await open.keyboard.press("Enter");
  await open.waitForURL(/\/runs\//);

  // The daemon is lost while it writes a draft, and comes back at the same address with the same session.
  workspace("cut", { "app.sh": "echo hello\n", "writer.sh": "sleep 600\n", "planctl.toml": "[roles.coder]\nagent = \"exec:bash writer.sh\"\n" });
  must("cut", "trust", ".");
  const cut = await begin("cut", "agent exec:bash writer.sh");
  await ann.getByText("drafts …").waitFor();
  await open.goto(base);
  await open.waitForTimeout(500);
  const pid = JSON.parse(must("home", "daemon", "status", "--json")).pid;
  process.kill(pid, "SIGKILL");
  await open.getByText("Live updates lost").waitFor();
  wrong.length = 0; // The lost connection is told to the console.
  must("home", "daemon", "start");
  await until("updates are back", async () => (await open.textContent("#connection")) === "");
  wrong.length = 0;
  console.log("ok: a lost daemon is said, and its return");
  await look(ann, "draft-interrupted", cut);
  await ann.getByText("The daemon stopped while this draft was being written.").waitFor();
  await look(ann, "drafts-interrupted", `/drafts?project=${encodeURIComponent(path.join(place, "cut"))}`);
  wrong.length = 0; // Its own page lost the connection, too.
  console.log("ok: a draft that the daemon left half written is there, and says so");

  // A plan of 5,000 steps.
  const COUNT = Number(process.env.PAGE_STEPS ?? 5000);
  workspace("huge", { "huge.md": plan("Five thousand steps", Array.from({ length: COUNT }, (_, at) => [`Step ${at + 1}`, "test -e never"])), "wait.sh": "sleep 600\n" });
  must("huge", "run", "huge.md", "--approve", "-d", "--exec", "bash wait.sh");
  await until("it runs", () => state("huge", "huge-1") === "running");
  for (const [name, address] of [["huge", "/runs/huge-1"], ["huge-graph", "/runs/huge-1/graph"], ["huge-middle", "/runs/huge-1?from=2500"]]) {
    await look(open, name, address);
    const paint = await open.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    console.log(`${name}: first paint after ${Math.round(paint)} ms`);
  }
  await open.goto(`${base}/runs/huge-1/graph`);
  await open.getByText(/^It shows \d+ of/).waitFor();
  // A box that stands for several leads to them; a box of one leads to its evidence.
  await open.locator("svg a[href*='at=']").last().click();
  await open.getByText("around the one that you chose").waitFor();
  await open.getByRole("link", { name: "Show what is under way" }).click();
  await open.locator("svg a[href*='steps/1']").first().click();
  await open.getByRole("heading", { name: "Attempts" }).waitFor();
  await look(open, "huge-step", `/runs/huge-1/steps/${COUNT / 2}`);
  must("huge", "cancel", "huge-1");

  assert.deepEqual(wrong, [], "nothing is wrong on the console");
  console.log("ok");
} finally {
  await browser?.close();
  run("home", "daemon", "stop");
  run("home", "db", "stop");
  fs.rmSync(place, { recursive: true, force: true });
}

// Drives the page in a real Chromium: `just page`. The first argument is the planctl to test; pictures go into the folder that
// the second one names. It stops at the first thing that is wrong.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
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
    const html = await answer.text();
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

  // Every screen, as everybody sees it.
  const ask = await ann.getByRole("link", { name: "answer the escalation" }).getAttribute("href");
  const shown = { home: "/", ask, run: "/runs/auth-1", step: "/runs/auth-1/steps/2", graph: "/runs/auth-1/graph", runs: "/runs", plans: "/plans", plan: "/plans/1", system: "/system" };
  for (const [name, address] of Object.entries(shown)) await look(ann, name, address);
  const looks = {
    phone: { viewport: { width: 360, height: 740 } },
    dark: { colorScheme: "dark" },
    forced: { forcedColors: "active" },
  };
  for (const [name, options] of Object.entries(looks)) {
    const page = await signedIn(options);
    for (const screen of ["home", "ask", "run", "step", "graph"]) await look(page, `${screen}-${name}`, shown[screen]);
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

  // The keyboard alone.
  await open.reload();
  await open.keyboard.press("j");
  assert.equal(await open.evaluate(() => document.activeElement.closest(".row") !== null), true);
  await open.keyboard.press("Enter");
  await open.waitForURL(/\/runs\//);

  // The daemon is lost, and comes back at the same address with the same session.
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
  must("huge", "cancel", "huge-1");

  assert.deepEqual(wrong, [], "nothing is wrong on the console");
  console.log("ok");
} finally {
  await browser?.close();
  run("home", "daemon", "stop");
  run("home", "db", "stop");
  fs.rmSync(place, { recursive: true, force: true });
}

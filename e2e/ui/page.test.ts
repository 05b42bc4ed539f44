/** The page at /ui in a real browser, before an API server whose objects are the same each time. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "@coxswain/apiserver/testing/start-test-server";
import type { Browser, Page } from "playwright-core";
import { load, type OpenPage, openPage, type PageOptions, startBrowser } from "./browser.ts";
import { store } from "./etcd.ts";
import { assertLooksAs } from "./golden.ts";
import { metricsDefinitions, podOf, sceneMs, sceneObjects, usageObjects } from "./scene.ts";

const closing: (() => Promise<void> | void)[] = [];
const life = { after: (fn: () => Promise<void> | void) => void closing.unshift(fn) };
let server: TestServer;
let browser: Browser;
/** Draws pictures to compare them. */
let blank: Page;

before(async () => {
  [server, browser] = await Promise.all([
    startTestServer(life, ["--ui", "--storage-media-type=application/json"]),
    startBrowser(life),
  ]);
  for (const definition of metricsDefinitions) {
    const { code, text } = await server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
    assert.equal(code, 201, text);
  }
  await store(server, [...sceneObjects(), ...usageObjects()]);
  blank = await browser.newPage();
});
// Registered with the suite, not with a test: all tests share the server and the browser.
test.after(async () => {
  for (const close of closing) await close();
});

const open = (t: { after(fn: () => Promise<void>): void }, more: Partial<PageOptions> = {}): Promise<OpenPage> =>
  openPage(browser, { url: server.url, token: server.adminToken, nowMs: sceneMs, ...more }).then((opened) => {
    t.after(() => opened.context.close());
    return opened;
  });

/** Until usage, causes and fonts are there: what the golden pictures show. */
async function settled(page: Page): Promise<void> {
  const isSettled = "!/^…$/m.test(document.body.innerText) && document.fonts.status === 'loaded'";
  await waitFor(() => page.evaluate<boolean>(isSettled), { what: "the page to settle" });
}

/** The answer of /debug/explain. */
const explained = async (resource: string, namespace: string, name: string): Promise<string> =>
  (await server.request("GET", `/debug/explain/namespaces/${namespace}/${resource}/${name}`)).text;

interface Look {
  readonly name: string;
  readonly hash: string;
  readonly until: (page: Page) => Promise<unknown>;
  readonly more?: Partial<PageOptions>;
  readonly light?: boolean;
}

const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

/** Reloads the page until it shows the texts: its clock is fixed, so it never repeats a request that a busy server did not answer. */
async function shows(page: Page, texts: readonly string[]): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await Promise.all(texts.map((text) => page.getByText(text).waitFor({ timeout: 15_000 })));
      return;
    } catch (err) {
      if (attempt === 8) throw err;
      await load(() => page.reload());
    }
  }
}
const usage = (page: Page): Promise<void> => shows(page, ["cores used", "it requests 150m"]);

const looks: readonly Look[] = [
  { name: "cluster-dark", hash: "#/cluster", until: usage },
  { name: "cluster-light", hash: "#/cluster", until: usage, light: true },
  { name: "workloads", hash: "#/workloads", until: (page) => page.getByText("orders-db").waitFor() },
  { name: "pods", hash: "#/pods", until: (page) => page.getByText("68m").first().waitFor() },
  { name: "events", hash: "#/events", until: (page) => page.getByText("in the last hour").waitFor() },
  {
    name: "why",
    hash: "#/trouble?o=deployments.apps/shop/cart",
    async until(page) {
      await waitFor(async () => /"remedy"/.test(await explained("deployments.apps", "shop", "cart")), { what: "an explanation" });
      await load(() => page.reload());
      await shows(page, ["What to do", "it requests 150m"]);
    },
  },
  { name: "phone", hash: "#/cluster", until: usage, more: phone },
];

for (const { name, hash, until, more = {}, light = false } of looks) {
  test(`looks as its picture, and is accessible: ${name}`, async (t) => {
    const { page, complaints } = await open(t, { hash, colorScheme: light ? "light" : "dark", ...more });
    await until(page);
    await settled(page);
    await assertLooksAs(name, await page.screenshot({ animations: "disabled" }), blank);
    await assertAccessible(page);
    assert.deepEqual(complaints, []);
  });
}

const axe = readFileSync(join(createRequire(import.meta.url).resolve("axe-core"), "..", "axe.min.js"), "utf8");

async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(axe);
  const violations = await page.evaluate<readonly { id: string; nodes: { html: string; failureSummary: string }[] }[]>(
    "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
  );
  const reported = violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}\n${nodes[0]?.failureSummary}`);
  assert.deepEqual(reported, []);
}

test("requires a token, shows why one is rejected, and removes it when the user signs out", async (t) => {
  const { page, complaints } = await open(t, { token: undefined as never });
  await page.getByLabel("Bearer token").waitFor();
  await assertAccessible(page);
  await page.getByLabel("Bearer token").fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("does not accept this token").waitFor();
  await page.getByLabel("Bearer token").fill(server.adminToken);
  await page.keyboard.press("Enter");
  await page.locator(".live.good").waitFor();
  await load(() => page.reload());
  await page.locator(".live.good").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Bearer token").waitFor();
  await load(() => page.reload());
  await page.getByLabel("Bearer token").waitFor();
  assert.deepEqual(await page.evaluate("[sessionStorage.length, document.cookie]"), [0, ""]);
  assert.deepEqual(complaints, []);
});

test("needs no token with a client certificate", async (t) => {
  const { cert, key } = await server.clientCertificate("jane", ["system:masters"]);
  const clientCertificates = [{ origin: server.url, cert: Buffer.from(cert), key: Buffer.from(key) }];
  const { page } = await open(t, { token: undefined as never, clientCertificates });
  await page.locator(".card", { hasText: "control-1" }).waitFor();
});

test("shows who may read one namespace that namespace, and nothing else", async (t) => {
  const post = async (path: string, body: object): Promise<void> => {
    const { code, text } = await server.request("POST", path, body);
    assert.equal(code, 201, text);
  };
  const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop";
  const rules = [{ apiGroups: ["", "apps"], resources: ["*"], verbs: ["get", "list", "watch"] }];
  await post(`${rbac}/roles`, { metadata: { name: "reader" }, rules });
  const subjects = [{ kind: "User", name: "jane", apiGroup: "rbac.authorization.k8s.io" }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" };
  await post(`${rbac}/rolebindings`, { metadata: { name: "jane" }, roleRef, subjects });
  const { page } = await open(t, { token: "user-token", hash: "#/pods" });
  await page.getByText("cannot list resource").waitFor();
  await page.getByPlaceholder("namespace").fill("shop");
  await page.keyboard.press("Enter");
  await page.getByRole("row", { name: /orders-db-0/ }).waitFor();
  const all = await page.getByRole("row").allInnerTexts();
  assert.deepEqual(
    all.slice(1).filter((row) => !row.includes("shop")),
    [],
  );
  await page.goto(`${server.url}/ui/#/pods?ns=shop&o=pods/billing/month-end`);
  await page.getByText("There is no month-end").waitFor();
});

test("is used with the keyboard alone", async (t) => {
  const { page, complaints } = await open(t);
  const press = (...keys: string[]): Promise<void> =>
    keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  await press("3");
  await page.getByRole("grid", { name: "Pods" }).waitFor();
  await press("j", "j", "k", "Enter");
  const panel = page.getByRole("complementary");
  await panel.waitFor();
  assert.match(page.url(), /#\/pods\?o=pods%2Fbilling%2Finvoices-/);
  await press("e");
  await page.getByRole("tab", { name: "Events", selected: true }).waitFor();
  await press("y");
  await panel.getByText('"kind": "Pod"').waitFor();
  await press("Escape");
  await panel.waitFor({ state: "detached" });
  await press("/");
  await page.keyboard.type("kind:deployment cart");
  await page.getByRole("option", { name: /cart/ }).waitFor();
  await press("ArrowDown", "Enter");
  await page.getByRole("complementary", { name: "Deployment cart" }).waitFor();
  await press("t");
  await page.locator("html[data-theme=light]").waitFor();
  await press("?");
  await page.getByRole("dialog").waitFor();
  await assertAccessible(page);
  await press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await press("End", "Home", "PageDown", "PageUp");
  await page.goBack();
  assert.deepEqual(complaints, []);
});

test("finds by words, namespace, node, kind and state", async (t) => {
  const { page } = await open(t, { hash: "#/pods" });
  const countOf = async (query: string): Promise<string | null> => {
    await page.getByRole("combobox", { name: "Search all objects" }).fill(query);
    await page.waitForTimeout(100);
    return page.getByRole("grid", { name: "Pods" }).getAttribute("aria-rowcount");
  };
  for (const [query, rows] of [
    ["", 105],
    ["ns:monitoring", 5],
    ["is:bad", 5],
    ["is:bad ns:shop", 2],
    ["node:worker-6 prometheus", 2],
    ["crashloop", 3],
    ["no-such-thing", 1],
  ] as const) {
    assert.equal(await countOf(query), String(rows), query);
  }
});

test("is not fooled by names, logs and annotations that try to be more", async (t) => {
  const evil = podOf({ namespace: "shop", name: "evil", minutes: 5, node: "<img src=x onerror=alert(1)>", state: "crashing" });
  const long = "<script>alert(2)</script>".repeat(40_000); // a megabyte
  const { metadata } = evil.object;
  const object = {
    ...evil.object,
    metadata: { ...metadata, annotations: { big: long, "\u202eevil": "\u001b[31mred\u001b]0;title\u0007" } },
  };
  const status = (object as unknown as { status: { containerStatuses: { state: object }[] } }).status;
  (status.containerStatuses[0] as { state: object }).state = {
    waiting: { reason: "<b onclick=alert(3)>Bold</b>", message: "<i>" },
  };
  await store(server, [{ folder: "pods", object }]);
  t.after(async () => void (await server.request("DELETE", "/api/v1/namespaces/shop/pods/evil?gracePeriodSeconds=0")));
  const { page, complaints } = await open(t, { hash: "#/pods?q=evil" });
  const dialogs: string[] = [];
  page.on("dialog", (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  await page.getByRole("row", { name: /<b onclick=alert\(3\)>Bold<\/b>/ }).waitFor();
  await page.goto(`${server.url}/ui/#/cluster`);
  await page.locator(".card").first().waitFor();
  await page.goto(`${server.url}/ui/#/pods?o=pods/shop/evil&tab=json`);
  await page.getByText("more characters").first().waitFor();
  assert.equal(await page.locator("main img, main script, aside img, aside script").count(), 0);
  assert.deepEqual(dialogs, []);
  // A megabyte in one line is not put into the document.
  assert.ok((await page.evaluate<number>("document.body.innerText.length")) < 40_000);
  assert.deepEqual(complaints, []);
});

test("may run no script but its own, is framed by no page, and sends nothing elsewhere", async (t) => {
  const { page } = await open(t, { token: undefined as never });
  await page.getByLabel("Bearer token").waitFor();
  const tried = await page.evaluate<readonly string[]>(`(async () => {
    const violations = [];
    document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => violations.push(effectiveDirective));
    const script = document.createElement("script");
    try { script.textContent = "window.hacked = 1"; document.head.append(script); } catch { violations.push("trusted types"); }
    const style = document.createElement("div");
    style.setAttribute("style", "color: red");
    document.body.append(style);
    await fetch("https://127.0.0.1:1/").catch(() => {});
    const frame = document.createElement("iframe");
    frame.src = "https://127.0.0.1:1/";
    document.body.append(frame);
    await new Promise((resolve) => setTimeout(resolve, 100));
    return [...violations, String(window.hacked)];
  })()`);
  for (const each of ["style-src-attr", "connect-src", "frame-src", "undefined"])
    assert.ok(tried.includes(each), `${each} in ${tried}`);
  assert.ok(tried.includes("trusted types") || tried.includes("require-trusted-types-for"), String(tried));
});

test("catches up when the API server was away", async (t) => {
  const { page, context } = await open(t, { hash: "#/pods?q=comes-back", nowMs: undefined as never });
  await context.setOffline(true);
  await store(server, [podOf({ namespace: "shop", name: "comes-back-1", minutes: 1, node: "worker-2" })]);
  t.after(async () => void (await server.request("DELETE", "/api/v1/namespaces/shop/pods/comes-back-1?gracePeriodSeconds=0")));
  await context.setOffline(false);
  await page.getByRole("row", { name: /comes-back-1/ }).waitFor();
});

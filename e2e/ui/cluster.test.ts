/** The page before a real cluster: real pods, their logs, and why one does not run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { send } from "../framework/api.ts";
import { kubectl, settings } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { busybox, createPod } from "../framework/pods.ts";
import { openPage, startBrowser } from "./browser.ts";

const url = `https://127.0.0.1:${settings.ports.apiserver}`;
const paused = { containers: [busybox("main", "sleep 3600")], terminationGracePeriodSeconds: 0 };

/** A service account that may read everything, as the token of a person would. */
async function readerToken(namespace: string): Promise<string> {
  await kubectl("create", "serviceaccount", "looker", "-n", namespace);
  const name = `looker-${namespace}`;
  await kubectl("create", "clusterrolebinding", name, "--clusterrole=cluster-admin", `--serviceaccount=${namespace}:looker`);
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/looker/token`;
  const { code, text } = await send("POST", path, JSON.stringify({ spec: {} }), { "content-type": "application/json" });
  assert.equal(code, 201, text);
  return (JSON.parse(text) as { status: { token: string } }).status.token;
}

test("shows new pods at once, follows a log with its colours, and says why a pod does not run", async (t) => {
  const namespace = await newNamespace(t, "ui");
  const token = await readerToken(namespace);
  t.after(() => kubectl("delete", "clusterrolebinding", `looker-${namespace}`).then(() => {}));
  const browser = await startBrowser(t);
  const { page, complaints } = await openPage(browser, { url, token, hash: `#/pods?ns=${namespace}` });

  // When a row with a pod's name first is in the document, by the clock of this machine.
  await page.evaluate(`globalThis.firstSeen = {};
    new MutationObserver(() => {
      for (const { textContent } of document.querySelectorAll("main .cell.name")) firstSeen[textContent] ??= Date.now();
    }).observe(document.body, { childList: true, subtree: true, characterData: true })`);
  const delays: number[] = [];
  for (let i = 0; i < 10; i++) {
    const name = `new-${i}`;
    const body = JSON.stringify({ metadata: { name }, spec: { ...paused, nodeName: "nowhere" } });
    const { code, text } = await send("POST", `/api/v1/namespaces/${namespace}/pods`, body, {
      "content-type": "application/json",
    });
    const createdMs = Date.now();
    assert.equal(code, 201, text);
    await page.getByRole("row", { name: new RegExp(`${name} `) }).waitFor();
    delays.push((await page.evaluate<number>(`firstSeen["${name}"]`)) - createdMs);
  }
  delays.sort((a, b) => a - b);
  t.diagnostic(`figure: a new pod is shown after ${delays[0]} to ${delays[9]} ms, ${delays[5]} in the median`);
  // The best of ten: other work on the machine delays some of them.
  assert.ok((delays[0] as number) < 200, `shown after ${delays.join(", ")} ms`);

  const script = 'i=0; while true; do i=$((i+1)); printf "\\033[31mline\\033[0m $i <b>\\n"; sleep 1; done';
  await createPod(namespace, "talks", { ...paused, containers: [busybox("main", script)] });
  await page.getByRole("row", { name: /talks .*Running/ }).click();
  await page.getByRole("complementary", { name: "Pod talks" }).getByText("Restarts").waitFor();
  await page.keyboard.press("l");
  const log = page.getByRole("region", { name: "Log of main" });
  await log
    .getByText(/^line \d+ <b>$/)
    .nth(2)
    .waitFor();
  assert.equal(await log.locator(".ansi-red").first().textContent(), "line");

  const spec = { ...paused, containers: [{ name: "main", image: "cox.local/not-there:1", imagePullPolicy: "Never" }] };
  await createPod(namespace, "stuck", spec);
  await page.keyboard.press("5");
  const trouble = page.getByRole("row", { name: /stuck.*cox\.local\/not-there:1/ });
  await trouble.click();
  await page.getByRole("complementary", { name: "Pod stuck" }).getByText("What to do").waitFor();
  assert.deepEqual(complaints, []);
});

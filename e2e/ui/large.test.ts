/** The page before a large cluster: memory, smoothness, and that it shows what is new at once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer } from "@coxswain/apiserver/testing/start-test-server";
import { openPage, startBrowser } from "./browser.ts";
import { store } from "./etcd.ts";
import { heapBytes, scroll } from "./renderer.ts";
import { nodeOf, podOf } from "./scene.ts";

const isLong = process.env["COX_TEST_LONG"] !== undefined;
const [nodeCount, podCount, frames] = isLong ? [1_000, 20_000, 300] : [200, 4_000, 100];

const nodeName = (i: number): string => `node-${String(i).padStart(4, "0")}`;
const states = ["running", "running", "running", "running", "completed", "starting"] as const;
const nodes = Array.from({ length: nodeCount }, (_, i) => nodeOf(nodeName(i), i % 97 === 5 ? "away" : "ready"));
const pods = Array.from({ length: podCount }, (_, i) =>
  podOf({
    namespace: `team-${i % 40}`,
    name: `app-${i % 300}-5d8f7c9b4-${i.toString(36).padStart(5, "0")}`,
    minutes: 10 + (i % 5_000),
    labels: { app: `app-${i % 300}`, "pod-template-hash": "5d8f7c9b4" },
    node: nodeName(i % nodeCount),
    state: i % 211 === 7 ? "crashing" : states[i % states.length],
  }),
);

test(`${nodeCount} nodes and ${podCount} pods: below 150 MB, and 60 frames a second`, async (t) => {
  const server = await startTestServer(t, ["--ui", "--storage-media-type=application/json"]);
  await store(server, [...nodes, ...pods]);
  const browser = await startBrowser(t);
  const { page, complaints } = await openPage(browser, { url: server.url, token: server.adminToken, hash: "#/pods" });
  const grid = page.getByRole("grid", { name: "Pods" });
  await waitFor(async () => (await grid.getAttribute("aria-rowcount")) === String(podCount + 1), { what: "all pods" });

  const list = await scroll(browser, page, ".rows", frames);
  await page.goto(`${server.url}/ui/#/cluster`);
  await page.locator(".card").first().waitFor();
  const picture = await scroll(browser, page, ".scroll", frames);
  const bytes = await heapBytes(page);
  t.diagnostic(`figure: pods ${list.cpuMs.toFixed(1)} ms, nodes ${picture.cpuMs.toFixed(1)} ms of the main thread for a frame`);
  t.diagnostic(`figure: ${(bytes / 2 ** 20).toFixed(0)} MiB in page and worker`);
  assert.ok(bytes < 150e6, `${bytes} bytes`);
  // A frame of 60 a second has 16.7 ms.
  assert.ok(list.cpuMs < 16 && picture.cpuMs < 16, `${list.cpuMs} and ${picture.cpuMs} ms for a frame`);
  assert.ok((await page.locator(".card").count()) < 150, "only the visible nodes are in the document");

  const before = await page.evaluate<number>("document.querySelectorAll('*').length");
  assert.ok(before < 3_000, `${before} elements`);
  await page.goto(`${server.url}/ui/#/pods?q=brand-new`);
  await store(server, [podOf({ namespace: "team-1", name: "brand-new", minutes: 0, node: nodeName(1) })]);
  await page.getByRole("row", { name: /brand-new/ }).waitFor();
  assert.deepEqual(complaints, []);
});

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { persistentVolumeClaims, persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { openFolders } from "./folders.ts";
import { newLeftFolders } from "./left-folders.ts";

const uid = (i: number): string => `1a2b3c4d-0000-4000-8000-00000000000${i}`;
const nameOf = (i: number): string => `pvc-${uid(i)}`;

test("only an empty folder of a claim that is gone, without volume, is removed, and not before a minute", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "cox-volumes-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const folders = await openFolders(root);
  for (let i = 1; i <= 6; i++) await folders.create(nameOf(i));
  await folders.create("lost+found");
  writeFileSync(join(root, nameOf(3), "data"), "of a pod");
  for (const name of readdirSync(root)) if (name !== nameOf(4)) utimesSync(join(root, name), 1, 1);
  const client = newFakeClient();
  client.put(persistentVolumes, { metadata: { name: nameOf(1) }, spec: {} });
  client.put(persistentVolumeClaims, { metadata: { namespace: "default", name: "data", uid: uid(2) }, spec: {} });
  const informers = newInformerFactory(client, { clock: realClock, log: discardLogger });
  const ending = new AbortController();
  const left = newLeftFolders({ folders, informers, log: discardLogger, clock: realClock });
  informers.start(ending.signal);
  const running = left.run(ending.signal);
  t.after(async () => {
    ending.abort();
    await running;
  });
  await waitFor(() => !readdirSync(root).includes(nameOf(6)));
  await waitFor(() => !readdirSync(root).includes(nameOf(5)));
  assert.deepEqual(
    readdirSync(root).sort(),
    ["lost+found", nameOf(1), nameOf(2), nameOf(3), nameOf(4)],
    "of a volume, of a claim, with data, new",
  );
});

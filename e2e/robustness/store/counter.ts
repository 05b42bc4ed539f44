import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { check } from "../../framework/history/check.ts";
import { newRecording, newRecordingClient, type PatchType, type RecordingClient } from "../../framework/history/recorder.ts";
import type { Read, Write } from "../../framework/history/records.ts";
import type { ApiServer } from "./apiservers.ts";
import type { Stage } from "./stage.ts";
import { configMaps } from "./workload.ts";

/** COX_TEST_LONG: 32 clients count to 2,000 times its value; the value 10 takes a quarter of an hour. */
const rounds = Number(process.env["COX_TEST_LONG"] ?? 0);
const size = rounds === 0 ? { clients: 8, target: 150 } : { clients: 32, target: 2_000 * rounds };

interface Counter extends KubeObject {
  data: { n: string; tag: string };
}

type Increment = (client: RecordingClient, from: Counter, tag: string) => Promise<Write>;

const patched =
  (type: PatchType, query = ""): Increment =>
  (client, { metadata, data }, tag) => {
    const { name, namespace, resourceVersion } = metadata;
    const identity = type === "apply" ? { apiVersion: "v1", kind: "ConfigMap" } : {};
    const next = { ...identity, metadata: { name, namespace, resourceVersion }, data: { n: String(Number(data.n) + 1), tag } };
    return client.patch(`${namespace}/${name}`, type, next, query);
  };

/** Every kind of conditional write, with its response on a conflict. */
const increments: readonly { name: string; increment: Increment; clash: number }[] = [
  {
    name: "PUT",
    increment: (client, from, tag) => client.update({ ...from, data: { n: String(Number(from.data.n) + 1), tag } } as Counter),
    clash: 409,
  },
  { name: "merge patch", increment: patched("merge"), clash: 409 },
  { name: "strategic merge patch", increment: patched("strategic-merge"), clash: 409 },
  { name: "apply", increment: patched("apply", "fieldManager=counter&force=true"), clash: 409 },
  {
    name: "JSON patch",
    increment: (client, { metadata, data }, tag) =>
      client.patch(`${metadata.namespace}/${metadata.name}`, "json", [
        { op: "test", path: "/metadata/resourceVersion", value: metadata.resourceVersion },
        { op: "replace", path: "/data/n", value: String(Number(data.n) + 1) },
        { op: "replace", path: "/data/tag", value: tag },
      ]),
    clash: 422,
  },
];

/** Many clients increment one object with every kind of write: no increment is lost, every conflict is refused. */
export async function countTogether(t: TestContext, { apis, history, namespaces, compact }: Stage): Promise<void> {
  const recording = newRecording();
  const newClient = (name: string, server: number): RecordingClient => {
    const { url } = apis.servers[server % apis.servers.length] as ApiServer;
    const client = newRecordingClient({ name, recording, resource: configMaps, ca: apis.ca, token: apis.token, url: () => url });
    t.after(() => client.close());
    return client;
  };
  const clients = Array.from({ length: size.clients }, (_, i) => newClient(`counter-${i}`, i));
  const reader = newClient("reader", 1);
  const [namespace] = namespaces;
  for (const name of ["a", "counter", "z"]) {
    const { code } = await reader.create({
      ...common,
      metadata: { name, namespace },
      data: { n: "0", tag: `begin-${name}` },
    } as KubeObject);
    assert.equal(code, 201);
  }

  let counting = true;
  let expired = 0;
  const paging = (async () => {
    while (counting) {
      let page: Read = await reader.list(`${namespace}/`, { limit: 1 });
      while (page.continueToken !== undefined) {
        await history.caughtUp();
        await compact();
        page = await reader.list(`${namespace}/`, { limit: 1, previous: page });
        if (page.code === 410) expired++;
      }
    }
  })();

  let tags = 0;
  let done = 0;
  const clashes: Record<string, number> = {};
  await Promise.all(
    clients.map(async (client, i) => {
      for (let turn = i; done < size.target; turn++) {
        const { name, increment, clash } = increments[turn % increments.length] as (typeof increments)[number];
        const { items } = await client.get(`${namespace}/counter`);
        const { code } = await increment(client, items[0] as Counter, `step-${tags++}`);
        if (code === 200) done++;
        else {
          assert.equal(code, clash, `a clash of a ${name}`);
          clashes[name] = (clashes[name] ?? 0) + 1;
        }
      }
    }),
  );
  counting = false;
  await paging;

  const { items } = await reader.get(`${namespace}/counter`);
  t.diagnostic(JSON.stringify({ done, clashes, expired }));
  assert.equal(Number((items[0] as Counter).data.n), done);
  assert.ok(expired > 0, "pages were compacted away");
  await history.caughtUp();
  assert.deepEqual(check(recording, history.versions(configMaps)).slice(0, 20), []);
}

const common = { apiVersion: "v1", kind: "ConfigMap" };

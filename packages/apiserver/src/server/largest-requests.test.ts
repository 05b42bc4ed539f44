/**
 * Objects in which one list or map has as many items as a request may have: neither their creation, update, patches and deletion nor their
 * representations take a long event-loop turn. With COX_TEST_LONG: every list and map of every kind (275 fields, some 11 minutes on an idle machine).
 */
import assert from "node:assert/strict";
import { connect } from "node:http2";
import { after, before, test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { builtInResources } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { leastOf, longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { mostItems, type RepeatedField, repeatedFields, withRepeated } from "../testing/repeated-fields.ts";
import { smallestObjects } from "../testing/smallest-objects.ts";
import { startTestServer } from "../testing/start-test-server.ts";
import { sendUnread } from "../testing/unread-request.ts";

const isLong = process.env["COX_TEST_LONG"] !== undefined;
/** Three times the limit of 100 ms: other tests run beside it on the same cores. */
const longestTurnMs = 300;
/** Fields of the short form: the slowest of each way to validate, and of kinds that are stored in another version. */
const usual = new Set([
  "pods spec.volumes",
  "services spec.ports",
  "nodes status.capacity",
  "jobs status.uncountedTerminatedPods.failed",
  "horizontalpodautoscalers metadata.labels",
]);
/** More than etcd stores in one request, and a bit less than that. */
const largest = { request: 2_950_000, stored: 1_400_000 };

type ResourceRow = (typeof builtInResources)[number];

const server = await startTestServer({ after });
const session = connect(server.url, { ca: server.ca });
after(() => session.close());
before(() => server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } }));

const authorization = `Bearer ${server.adminToken}`;
const send = async (method: string, path: string, headers: Readonly<Record<string, string>>, body?: Buffer): Promise<number> =>
  (await sendUnread(session, method, path, { authorization, ...headers }, body)).code;

const json = { "content-type": "application/json" };
const patchTypes = {
  apply: { "content-type": "application/apply-patch+yaml" },
  merge: { "content-type": "application/merge-patch+json" },
  strategic: { "content-type": "application/strategic-merge-patch+json" },
};
const table = { accept: "application/json;as=Table;g=meta.k8s.io;v=v1" };

/** One version of each kind, the stable one where there is one. */
const kinds = new Map(
  builtInResources
    .filter((row) => !row.resource.includes("/") && row.verbs.includes("create") && row.verbs.includes("list"))
    .sort(
      (a, b) => Number(/alpha|beta/.test(b.version)) - Number(/alpha|beta/.test(a.version)) || a.version.localeCompare(b.version),
    )
    .map((row) => [`${row.group}/${row.kind}`, row]),
);
/** A type that several kinds contain, such as a pod's volumes, is measured once. */
const measured = new Set<string>();
let count = 0;

for (const row of kinds.values()) {
  for (const field of repeatedFields(scheme.kind(row) ?? assert.fail(row.kind))) {
    const last = field.path.at(-1);
    const type = `${last?.declaredBy}.${last?.name}`;
    if (field.path.length > 2 && measured.has(type)) continue;
    measured.add(type);
    const title = `${row.resource} ${field.name}`;
    if (!isLong && !usual.delete(title)) continue;
    const name = nameOf(row, ++count);
    test(`a large ${title} takes no turn of ${longestTurnMs} ms`, (t) => measure(row, field, name, (text) => t.diagnostic(text)));
  }
}

test("the fields of the short form exist", () => assert.deepEqual([...(isLong ? [] : usual)], []));

/** Some objects are named after their contents. */
function nameOf({ resource }: ResourceRow, number: number): string {
  if (resource === "customresourcedefinitions") return "ws.x.example";
  return resource === "apiservices" ? "v1.x.example" : `o${number}`;
}

async function measure(row: ResourceRow, field: RepeatedField, name: string, print: (text: string) => void): Promise<void> {
  const { group, version, kind, resource, namespaced } = row;
  const valid = smallestObjects[resource] ?? {};
  const body = (bytes: number, mark = ""): Buffer => {
    const object = withRepeated(valid, field, mostItems(valid, field, bytes), mark) as unknown as KubeObject;
    object.metadata = { ...object.metadata, name, ...(namespaced && { namespace: "default" }) };
    return Buffer.from(JSON.stringify({ ...object, apiVersion: group === "" ? version : `${group}/${version}`, kind }));
  };
  const all = `${group === "" ? "/api" : `/apis/${group}`}/${version}${namespaced ? "/namespaces/default" : ""}/${resource}`;
  const one = `${all}/${name}`;
  const isStatus = field.name.startsWith("status") && resource !== "nodes";
  const written = isStatus ? `${one}/status` : one;
  const steps: readonly { readonly what: string; run(): Promise<number>; readonly undo?: () => Promise<unknown> }[] = [
    ...(isStatus
      ? [
          {
            what: "small create",
            run: () => send("POST", all, json, Buffer.from(JSON.stringify({ ...valid, metadata: { name } }))),
          },
        ]
      : [largest.request, largest.stored].map((bytes) => {
          const sent = body(bytes);
          return { what: `create of ${bytes} bytes`, run: () => send("POST", all, json, sent), undo: remove };
        })),
    ...[body(largest.stored), body(largest.stored, "n")].map((sent) => ({
      what: "update",
      run: () => send("PUT", written, json, sent),
    })),
    {
      what: "small patch",
      run: () => send("PATCH", one, patchTypes.strategic, Buffer.from(`{"metadata":{"labels":{"a":"b"}}}`)),
    },
    ...[body(largest.stored)].flatMap((sent) => [
      { what: "merge patch", run: () => send("PATCH", written, patchTypes.merge, sent) },
      { what: "apply", run: () => send("PATCH", `${written}?fieldManager=m&force=true`, patchTypes.apply, sent) },
    ]),
    { what: "table", run: () => send("GET", `${all}?resourceVersion=0`, table) },
    { what: "get as YAML", run: () => send("GET", one, { accept: "application/yaml" }) },
  ];
  async function remove(): Promise<void> {
    await send("DELETE", `${one}?gracePeriodSeconds=0`, {});
    await send("PATCH", one, patchTypes.merge, Buffer.from(`{"metadata":{"finalizers":null}}`));
  }
  const tooLong: string[] = [];
  for (const { what, run, undo } of steps) {
    let code = 0;
    const longest = await leastOf(longestTurnMs, async (round) => {
      if (round > 0) await undo?.();
      return longestTurnOf(Number.POSITIVE_INFINITY, async () => {
        code = await run();
      });
    });
    if (longest > longestTurnMs / 3) print(`${what}: ${longest.toFixed(0)} ms, ${code}`);
    if (longest > longestTurnMs) tooLong.push(`${what}: a turn of ${longest} ms, ${code}`);
    if (undo && what !== `create of ${largest.stored} bytes`) await undo();
  }
  await remove();
  assert.deepEqual(tooLong, []);
}

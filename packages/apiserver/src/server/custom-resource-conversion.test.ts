/** Custom resources whose versions are converted by a webhook. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { aWidget, define, definitionsPath, widgets } from "../testing/custom-resources.ts";
import { type HookServer, startHookServer } from "../testing/start-hook-server.ts";
import { startTestServer } from "../testing/start-test-server.ts";

const group = "example.com";
const v1 = `/apis/${group}/v1/namespaces/default/widgets`;
const v2 = `/apis/${group}/v2/namespaces/default/widgets`;

// biome-ignore lint/suspicious/noExplicitAny: reviews hold objects of every shape.
type Loose = any;

/** `size` in v1 is `length` in v2. */
function convert(object: Loose, apiVersion: string): Loose {
  const { size, length, ...rest } = object.spec ?? {};
  const spec = apiVersion.endsWith("/v2") ? { ...rest, length: size } : { ...rest, size: length };
  return { ...object, apiVersion, spec };
}

async function converting(t: TestContext, change: (converted: Loose) => Loose = (same) => same, version = "v1") {
  const hook = await startHookServer();
  t.after(() => hook.stop());
  hook.raw.set("/convert", (response, { uid, desiredAPIVersion, objects }) => {
    const convertedObjects = objects.map((object: Loose) => change(convert(object, desiredAPIVersion)));
    const answer = { uid, convertedObjects, result: { status: "Success" } };
    response.end(JSON.stringify({ kind: "ConversionReview", apiVersion: `apiextensions.k8s.io/${version}`, response: answer }));
  });
  const server = await startTestServer(t);
  const clientConfig = { url: `${hook.url}/convert`, caBundle: hook.caBundle };
  const conversion = { strategy: "Webhook", webhook: { clientConfig, conversionReviewVersions: [version] } };
  await define(server, widgets(group, [{ name: "v1" }, { name: "v2" }], { conversion }));
  return { server, hook };
}

function requested(hook: HookServer): number[] {
  return hook.requested.map(({ request }) => request.objects.length);
}

for (const version of ["v1", "v1beta1"]) {
  test(`objects are converted by a webhook both ways, as ConversionReview ${version}`, async (t) => {
    const { server, hook } = await converting(t, undefined, version);
    assert.equal((await server.request("POST", v1, aWidget(group, "a", { spec: { size: 1 } }))).code, 201);
    const b = await server.request("POST", v2, aWidget(group, "b", { spec: { length: 2 } }, "v2"));
    assert.deepEqual([b.code, b.body.apiVersion, b.body.spec], [201, `${group}/v2`, { length: 2 }]);
    const stored = await server.request("GET", `${v1}/b`);
    assert.deepEqual(stored.body.spec, { size: 2 });
    hook.requested.length = 0;
    const list = await server.request("GET", v2);
    assert.deepEqual(
      list.body.items.map(({ spec }: Loose) => spec),
      [{ length: 1 }, { length: 2 }],
    );
    // Converted objects are cached.
    assert.deepEqual(requested(hook), [1]);
    const merge = { "content-type": "application/merge-patch+json" };
    const patched = await server.request("PATCH", `${v2}/a`, { spec: { length: 5 } }, merge);
    assert.deepEqual([patched.code, patched.body.spec, patched.body.metadata.generation], [200, { length: 5 }, 2]);
  });
}

test("a watch shows objects in its version, in order", async (t) => {
  const { server } = await converting(t);
  await server.request("POST", v1, aWidget(group, "a", { spec: { size: 1 } }));
  const watched = server.request("GET", `${v2}?watch=1&timeoutSeconds=2`);
  await server.request("POST", v1, aWidget(group, "b", { spec: { size: 2 } }));
  await server.request("DELETE", `${v1}/a`);
  const events = (await watched).text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .map(({ type, object }) => [type, object.metadata.name, object.spec.length]);
  assert.deepEqual(events, [
    ["ADDED", "a", 1],
    ["ADDED", "b", 2],
    ["DELETED", "a", 1],
  ]);
});

for (const { name, change, message } of [
  {
    name: "another name",
    change: (object: Loose) => ({ ...object, metadata: { ...object.metadata, name: "other" } }),
    message: `conversion webhook for ${group}/v1, Kind=Widget returned invalid object: must have the same name: a != other`,
  },
  {
    name: "the version it had",
    change: (object: Loose) => ({ ...object, apiVersion: `${group}/v1` }),
    message: `conversion webhook for ${group}/v1, Kind=Widget returned invalid object at index 0: invalid groupVersion (expected ${group}/v2, received ${group}/v1)`,
  },
]) {
  test(`a webhook that gives an object ${name} fails the request`, async (t) => {
    const { server } = await converting(t, change);
    await server.request("POST", v1, aWidget(group, "a"));
    const { code, body } = await server.request("GET", `${v2}/a`);
    assert.deepEqual([code, body.message], [500, message]);
  });
}

test("ownership of a field conflicts with an apply in another version, where the field has another name", async (t) => {
  const { server } = await converting(t);
  const applying = { "content-type": "application/apply-patch+yaml" };
  assert.equal((await server.request("POST", `${v1}?fieldManager=first`, aWidget(group, "a", { spec: { size: 1 } }))).code, 201);
  const apply = (length: number, more = "") =>
    server.request("PATCH", `${v2}/a?fieldManager=second${more}`, aWidget(group, "a", { spec: { length } }, "v2"), applying);
  const refused = await apply(2);
  assert.deepEqual([refused.code, refused.body.details?.causes?.length], [409, 1], refused.text);
  assert.match(refused.body.message, /conflict with "first" using example\.com\/v1.*: \.spec\.(size|length)$/);
  assert.equal((await apply(1)).code, 200, "the same value takes nothing away");
  const forced = await apply(3, "&force=true");
  assert.deepEqual([forced.code, forced.body.spec], [200, { length: 3 }]);
  const owners = forced.body.metadata.managedFields.map(({ manager, apiVersion, fieldsV1 }: Loose) => [
    manager,
    apiVersion,
    fieldsV1["f:spec"] === undefined ? [] : Object.keys(fieldsV1["f:spec"]).filter((key) => key !== "."),
  ]);
  assert.deepEqual(
    owners.filter(([, , fields]: Loose) => fields.length > 0),
    [["second", `${group}/v2`, ["f:length"]]],
  );
});

test("admission webhooks for another version are shown the object there, and what they change comes back", async (t) => {
  const { server, hook } = await converting(t);
  const shown: Loose[] = [];
  hook.raw.set("/mutate", (response, request: Loose) => {
    shown.push([request.kind.version, request.requestKind.version, request.object.apiVersion, request.object.spec]);
    const patch = Buffer.from(JSON.stringify([{ op: "replace", path: "/spec/size", value: 7 }])).toString("base64");
    const answer = { uid: request.uid, allowed: true, patchType: "JSONPatch", patch };
    response.end(JSON.stringify({ kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", response: answer }));
  });
  await server.request("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {
    metadata: { name: "widgets" },
    webhooks: [
      {
        name: "widgets.example.com",
        clientConfig: { url: `${hook.url}/mutate`, caBundle: hook.caBundle },
        rules: [{ operations: ["CREATE"], apiGroups: [group], apiVersions: ["v1"], resources: ["widgets"] }],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
      },
    ],
  });
  let n = 0;
  const create = async () => (await server.request("POST", v2, aWidget(group, `w${n++}`, { spec: { length: 2 } }, "v2"))).body;
  const made = await waitFor(async () => [await create()].find(() => shown.length > 0), { what: "the webhook to be called" });
  assert.deepEqual(shown[0], ["v1", "v2", `${group}/v1`, { size: 2 }]);
  assert.deepEqual([made.apiVersion, made.spec], [`${group}/v2`, { length: 7 }]);
});

test("a patch of a mutating webhook that leaves no custom object is refused, whatever it leaves", async (t) => {
  const { server, hook } = await converting(t);
  const otherKind = `Internal error occurred: admission webhook "widgets.example.com" attempted to change the kind of the object`;
  const cases: Record<string, { operation: object; want: readonly [code: number, message: string] }> = {
    kind: { operation: { op: "replace", path: "/kind", value: "Other" }, want: [500, otherKind] },
    nothing: { operation: { op: "replace", path: "", value: null }, want: [500, otherKind] },
    list: { operation: { op: "replace", path: "", value: [] }, want: [500, otherKind] },
    unnamed: {
      operation: { op: "remove", path: "/metadata" },
      want: [422, `Widget.example.com "" is invalid: metadata.name: Required value: name or generateName is required`],
    },
    text: {
      operation: { op: "replace", path: "/metadata", value: "text" },
      want: [500, "Internal error occurred: json: cannot unmarshal string into Go value of type v1.ObjectMeta"],
    },
  };
  hook.raw.set("/mutate", (response, { uid, object }: Loose) => {
    const operations = [cases[object.metadata.name]?.operation ?? { op: "test", path: "/kind", value: "Widget" }];
    const patch = Buffer.from(JSON.stringify(operations)).toString("base64");
    const answer = { uid, allowed: true, patchType: "JSONPatch", patch };
    response.end(JSON.stringify({ kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", response: answer }));
  });
  await server.request("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {
    metadata: { name: "widgets" },
    webhooks: [
      {
        name: "widgets.example.com",
        clientConfig: { url: `${hook.url}/mutate`, caBundle: hook.caBundle },
        rules: [{ operations: ["CREATE"], apiGroups: [group], apiVersions: ["v1"], resources: ["widgets"] }],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
      },
    ],
  });
  await waitFor(async () => {
    await server.request("POST", `${v1}?dryRun=All`, aWidget(group, "probe"));
    return hook.requested.some(({ path }) => path === "/mutate");
  });
  for (const [name, { want }] of Object.entries(cases)) {
    const { code, body } = await server.request("POST", v1, aWidget(group, name, { spec: { size: 1 } }));
    assert.deepEqual([code, body.message], want, name);
  }
});

test("finalizers and owners are not the webhook's to change, labels are", async (t) => {
  const { server } = await converting(t, (object) => ({
    ...object,
    metadata: { ...object.metadata, finalizers: ["x/y"], labels: { by: "webhook" } },
  }));
  await server.request("POST", v1, aWidget(group, "a"));
  const { body } = await server.request("GET", `${v2}/a`);
  assert.deepEqual([body.metadata.finalizers, body.metadata.labels], [undefined, { by: "webhook" }]);
});

test("an unreachable webhook fails the request that needs it, and no other", async (t) => {
  const { server, hook } = await converting(t);
  await server.request("POST", v1, aWidget(group, "a"));
  hook.stop();
  const { code, body } = await server.request("GET", `${v2}/a`);
  assert.equal(code, 500);
  assert.match(body.message, /^conversion webhook for example\.com\/v1, Kind=Widget failed: Post "https:.*connection refused$/);
  assert.equal((await server.request("GET", `${v1}/a`)).code, 200);
  assert.equal((await server.request("GET", `${definitionsPath}/widgets.${group}`)).code, 200);
});

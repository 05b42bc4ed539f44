import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer, Client } from "./client.ts";
import { complaintAbout } from "./judge.ts";
import { Random } from "./random.ts";
import { newSteps, type Step, type Walk } from "./requests.ts";
import { type Resource, readSurface, type Surface } from "./surface.ts";
import { walk as runWalk } from "./walk.ts";

const resource = (more: Partial<Resource> = {}): Resource => ({
  ...{ root: "/api/v1", group: "", version: "v1", resource: "configmaps", subresource: "", kind: "ConfigMap", apiVersion: "v1" },
  ...{ namespaced: true, verbs: ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] },
  ...more,
});
const surface: Surface = {
  resources: [resource(), resource({ resource: "nodes", kind: "Node", namespaced: false })],
  definitions: {
    "io.k8s.api.core.v1.ConfigMap": {
      type: "object",
      properties: { data: { type: "object", additionalProperties: { type: "string" } } },
      "x-kubernetes-group-version-kind": [{ group: "", version: "v1", kind: "ConfigMap" }],
    },
  },
  examples: new Map(),
  encoded: new Map(),
};
const stepsOf = (walk: Walk, from: number, count: number): Step[][] =>
  Array.from({ length: count }, (_, index) => newSteps(walk)(from + index));
const walk = { seed: 3, surface, namespace: "walk-3" };

test("the same seed and number give the same request, whatever preceded it", () => {
  assert.deepEqual(stepsOf(walk, 40, 5), stepsOf(walk, 0, 45).slice(40));
  assert.notDeepEqual(stepsOf({ ...walk, seed: 4 }, 0, 5), stepsOf(walk, 0, 5));
});

test("every resource, verb and quality comes once in each round", () => {
  const steps = stepsOf(walk, 0, 81).flat(); // 2 resources, 8 verbs, 5 qualities, and one lifecycle
  const corners = new Set(
    steps.filter((step) => step.number < 81).map(({ resource, verb, quality }) => `${resource.resource} ${verb} ${quality}`),
  );
  assert.equal(corners.size, 80);
  assert.ok(
    steps.some((step) => step.path.endsWith("gracePeriodSeconds=0")),
    "no object lived",
  );
});

test("writes are in the walk's namespace or dry runs", () => {
  for (const step of stepsOf(walk, 0, 1000).flat()) {
    if (["GET", "HEAD", "OPTIONS", "TRACE"].includes(step.method)) continue;
    const inNamespace =
      /^\/*(api|apis|%61pi)(\/watch)?\/(v1|v99)[/.]*\/namespaces\/(\.\.\/namespaces\/|\.\/)?walk-(3|nowhere)[/%]/.test(step.path);
    assert.ok(inNamespace || /[?&]dryRun=All(&|$)/.test(step.path), `${step.method} ${step.path}`);
  }
});

const answer = (code: number, body: unknown): Answer => ({
  code,
  headers: { "content-type": "application/json" },
  bytes: Buffer.alloc(0),
  text: typeof body === "string" ? body : JSON.stringify(body),
  wasCut: false,
});
/** The beginning of a protobuf Status, for messages of up to 16 kB. */
const inProtobuf = (code: number, message: string): Answer => {
  const size = message.length < 0x80 ? [message.length] : [(message.length & 0x7f) | 0x80, message.length >> 7];
  const bytes = Buffer.from([..."k8s\0\x0a\0\x12\x07Failure\x1a"].map((char) => char.charCodeAt(0)));
  const text = Buffer.concat([bytes, Buffer.from(size), Buffer.from(message)]).toString();
  return { ...answer(code, text), headers: { "content-type": "application/vnd.kubernetes.protobuf" } };
};
const failure = (code: number, reason: string, message = "") => ({ kind: "Status", status: "Failure", code, reason, message });

for (const { name, subresource = "", given, want } of [
  { name: "a success", given: answer(200, {}), want: undefined },
  { name: "a Status with a reason", given: answer(404, failure(404, "NotFound")), want: undefined },
  { name: "plain text", given: answer(404, "404 page not found"), want: /without a Status/ },
  { name: "a Status without a reason", given: answer(400, failure(400, "")), want: /no reason/ },
  { name: "another code inside", given: answer(400, failure(422, "Invalid")), want: /says 422/ },
  { name: "an internal error", given: answer(500, failure(500, "InternalError")), want: /^500/ },
  { name: "a proxy without a node", subresource: "proxy", given: answer(503, "no endpoints"), want: undefined },
  {
    name: "a version from the future",
    given: answer(504, failure(504, "Timeout", "Too large resource version: 9")),
    want: undefined,
  },
  {
    name: "an error by design in YAML",
    given: answer(500, 'code: 500\nkind: Status\nmessage: "Component not found: x"\nmetadata: {}\nstatus: Failure\n'),
    want: undefined,
  },
  {
    name: "one whose YAML continues in a second line",
    given: answer(
      500,
      "code: 500\nkind: Status\nmessage: 'json: cannot unmarshal number into Go struct field DeleteOptions.dryRun\n  of type string'\nstatus: Failure\n",
    ),
    want: undefined,
  },
  ...[40, 200].map((pad) => ({
    name: `an error by design of ${pad} bytes and more in protobuf`,
    given: inProtobuf(500, `Component not found: ${"x".repeat(pad)}`),
    want: undefined,
  })),
  { name: "an error as a Table", given: answer(404, { kind: "Table" }), want: /^an error as a Table$/ },
  {
    name: "a Status that is a success",
    given: answer(404, { ...failure(404, "NotFound"), status: "Success" }),
    want: /without a Status/,
  },
  {
    name: "a Status without a code",
    given: answer(404, { ...failure(404, "NotFound"), code: undefined }),
    want: /says undefined/,
  },
  { name: "a log without its pod", subresource: "log", given: answer(400, "no container"), want: undefined },
  { name: "an error in protobuf", given: inProtobuf(404, "gone"), want: undefined },
  {
    name: "an error in protobuf without its envelope",
    given: { ...inProtobuf(404, "gone"), text: "gone" },
    want: /^an error in protobuf without its envelope$/,
  },
  {
    name: "another code for a version from the future",
    given: answer(500, failure(500, "Timeout", "Too large resource version: 9")),
    want: /^500/,
  },
  { name: "a success that is no JSON", given: answer(200, "metric 1"), want: undefined },
  { name: "another error in protobuf", given: inProtobuf(500, "it broke"), want: /^500/ },
]) {
  test(`classifies the answer: ${name}`, () => {
    const step = { ...stepsOf(walk, 0, 1)[0]?.[0], quality: "good", resource: resource({ subresource }) } as Step;
    const complaint = complaintAbout(step, given);
    if (want === undefined) assert.equal(complaint, undefined);
    else assert.match(complaint ?? "", want);
  });
}

test("what answers an odd request has no form, but is no internal error", () => {
  const step = { ...stepsOf(walk, 0, 1)[0]?.[0], quality: "odd" } as Step;
  assert.equal(complaintAbout(step, answer(404, "404 page not found")), undefined);
  assert.match(complaintAbout(step, answer(500, "broken")) ?? "", /^500: broken$/);
});

test("random numbers follow from all parts of their seed, in their limits", () => {
  const numbers = (...seed: number[]): number[] => {
    const random = new Random(...seed);
    return Array.from({ length: 300 }, () => random.below(3));
  };
  assert.deepEqual(numbers(1, 2), numbers(1, 2));
  for (const other of [[2, 1], [1, 3], [3, 2], [1]]) assert.notDeepEqual(numbers(...other), numbers(1, 2), String(other));
  for (const digit of [0, 1, 2]) assert.ok(numbers(1, 2).filter((number) => number === digit).length > 60, String(digit));
  const random = new Random(7);
  assert.equal(
    [...Array(100)].some(() => random.chance(0)),
    false,
  );
  assert.equal(
    [...Array(100)].every(() => random.chance(1)),
    true,
  );
  assert.deepEqual(new Set([...Array(100)].map(() => random.pick(["a", "b"]))), new Set(["a", "b"]));
});

const prepared: Readonly<Record<string, unknown>> = {
  "/apis": { groups: [] },
  "/api/v1": {
    groupVersion: "v1",
    resources: [{ name: "configmaps", kind: "ConfigMap", namespaced: true, verbs: ["get", "list"] }],
  },
  "/openapi/v2": { definitions: surface.definitions },
  "/api/v1/configmaps?limit=1": { items: [{ metadata: { name: "x", namespace: "n" } }] },
  "/api/v1/namespaces/n/configmaps/x": {},
};

/** A server of ConfigMaps that answers what a walk sends to it by `respond`, after what it prepares. */
function aServer(respond: (at: number) => Answer | Promise<Answer>) {
  const setUp: string[] = [];
  let namespace = "not known yet";
  let sent = 0;
  const client: Client = {
    async send({ method, path, body }) {
      const place = path.replace(namespace, "NS");
      const isSetUp = setUp.length < 2 || (method === "DELETE" && place === "/api/v1/namespaces/NS");
      if (isSetUp) {
        const { metadata, spec } = JSON.parse(body?.toString() ?? "{}");
        if (setUp.length === 0) namespace = metadata.name;
        setUp.push(`${method} ${place}${spec === undefined ? "" : ` ${JSON.stringify(spec)}`}`);
        return answer(200, {});
      }
      const known = sent === 0 ? prepared[path] : undefined;
      return known === undefined ? respond(sent++) : answer(200, known);
    },
    close() {},
  };
  return { client, setUp };
}

const wholeWalk = [
  "POST /api/v1/namespaces",
  'POST /api/v1/namespaces/NS/resourcequotas {"hard":{"pods":"3"}}',
  "DELETE /api/v1/namespaces/NS",
];
const refusal = answer(404, failure(404, "NotFound"));

test("a walk has a namespace with a quota, which goes at its end, and reports in the order of its requests", async () => {
  const others = Promise.withResolvers<void>();
  const { client, setUp } = aServer(async (at) => {
    if (at === 0) await others.promise; // the first answer comes late
    if (at === 30) others.resolve();
    return answer(500, "broken");
  });
  const { sent, codes, findings } = await runWalk(client, { seed: 3, count: 40 });
  assert.deepEqual(setUp, wholeWalk);
  assert.ok(sent >= 40);
  assert.deepEqual(codes, { 500: sent });
  const numbers = findings.map(({ step }) => step.number);
  assert.ok(numbers.length > 0);
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => a - b),
  );
});

test("a request that is refused with 429 is sent again, up to five times", async () => {
  const busy = answer(429, failure(429, "TooManyRequests"));
  for (const [answers, want] of [
    [[busy, busy, refusal], "404"],
    [[busy, busy, busy, busy, busy, busy, refusal], "429"],
  ] as const) {
    const { client } = aServer((at) => answers[at] ?? refusal);
    const { codes } = await runWalk(client, { seed: 3, count: 1, lanes: 1 });
    assert.ok(Object.hasOwn(codes, want), JSON.stringify(codes));
    assert.equal(Object.hasOwn(codes, "429"), want === "429");
  }
});

test("the namespace goes also when the server shows nothing to walk on", async () => {
  const { client, setUp } = aServer(() => refusal);
  const blind: Client = {
    ...client,
    send: (request) => (request.path === "/apis" ? Promise.resolve(answer(503, "no")) : client.send(request)),
  };
  await assert.rejects(runWalk(blind, { seed: 3, count: 1 }), { message: "GET /apis: 503 no" });
  assert.deepEqual(setUp, wholeWalk);
});

test("a namespace that is refused ends the walk before its first request", async () => {
  const paths: string[] = [];
  const client: Client = {
    async send({ path }) {
      paths.push(path);
      return answer(403, "no");
    },
    close() {},
  };
  await assert.rejects(runWalk(client, { seed: 3, count: 1 }), { message: "POST /api/v1/namespaces: 403 no" });
  assert.deepEqual(paths, ["/api/v1/namespaces"]);
});

test("a surface has each resource, an example of what can be listed, and that in protobuf where it has such a form", async () => {
  for (const code of [200, 406]) {
    const send = async ({ path }: { path: string }): Promise<Answer> =>
      path === "/api/v1/namespaces/n/configmaps/x" ? answer(code, "k8s") : answer(200, prepared[path]);
    const { resources, examples, encoded } = await readSurface({ send, close() {} });
    assert.deepEqual(resources, [resource({ verbs: ["get", "list"] })]);
    const example = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x", namespace: "n" } };
    assert.deepEqual([...examples], [["v1/ConfigMap", example]]);
    assert.deepEqual([...encoded.keys()], code === 200 ? ["v1/ConfigMap"] : []);
  }
});

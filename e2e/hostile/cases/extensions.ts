/** Definitions, webhooks and aggregated servers of an attacker who may install them. */
import { setTimeout as sleep } from "node:timers/promises";
import { type BackendHandler, pourInto } from "../backend.ts";
import { type Attack, attacked, type Case } from "../case.ts";

const maps = `${attacked}/configmaps`;
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const definition = (name: string, schema: object): object => ({
  metadata: { name: `${name}s.hostile.example.com` },
  spec: {
    group: "hostile.example.com",
    scope: "Namespaced",
    names: { plural: `${name}s`, kind: name.toUpperCase() },
    versions: [
      { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object", properties: { spec: schema } } } },
    ],
  },
});

/** Objects of a definition that is served before the attack starts. */
const objects = (name: string, plural: string, schema: object, spec: unknown): Case => ({
  name,
  user: "platform",
  async setup(attack) {
    await attack.prepare("POST", definitions, { body: definition(plural, schema) });
    const path = `/apis/hostile.example.com/v1/namespaces/attacked/${plural}s`;
    for (let tries = 0; tries < 200; tries++) {
      if ((await attack.admin.raw("GET", path)).status === 200) return;
      await sleep(50);
    }
    throw new Error(`${plural}s are not served`);
  },
  cleanup: (attack) => attack.prepare("DELETE", `${definitions}/${plural}s.hostile.example.com`),
  run: (attack) =>
    attack.repeat(10, (lane, round) =>
      attack.request("POST", `/apis/hostile.example.com/v1/namespaces/attacked/${plural}s?dryRun=All`, {
        body: {
          apiVersion: "hostile.example.com/v1",
          kind: plural.toUpperCase(),
          metadata: { name: `o-${lane}-${round}` },
          spec,
        },
      }),
    ),
});

/** Definitions that are invalid or expensive to compile. */
const defined = (name: string, schema: (at: number) => object): Case => ({
  name,
  user: "platform",
  cleanup: (attack) => attack.removeAll(definitions),
  run: (attack) =>
    attack.repeat(4, (lane, round) =>
      attack.request("POST", definitions, { body: definition(`d${lane}x${round}`, schema(round)) }),
    ),
});
const rule = (text: string, count: number): object => ({
  type: "object",
  properties: { a: { type: "array", items: { type: "string" } }, b: { type: "string" } },
  "x-kubernetes-validations": Array.from({ length: count }, (_, i) => ({ rule: text.replaceAll("N", String(i)) })),
});
const deep = (levels: number): object =>
  levels === 0 ? { type: "string" } : { type: "object", properties: { a: deep(levels - 1) } };

/** A webhook of the attacker for ConfigMaps in `attacked`, and writes that trigger it. */
const hooked = (name: string, kind: "validating" | "mutating", handler: BackendHandler): Case => {
  const path = `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations`;
  return {
    name,
    user: "ordinary",
    async setup(attack) {
      const { port } = await attack.backend(handler);
      const clientConfig = { url: `https://127.0.0.1:${port}/`, caBundle: Buffer.from(attack.ca).toString("base64") };
      const rules = [{ apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["*"] }];
      const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": "attacked" } };
      const common = { sideEffects: "None", admissionReviewVersions: ["v1"], timeoutSeconds: 30, failurePolicy: "Fail" };
      const webhooks = [{ name: "hostile.example.com", clientConfig, rules, namespaceSelector, ...common }];
      await attack.prepare("POST", path, { body: { metadata: { name: "hostile" }, webhooks } });
    },
    cleanup: (attack) => attack.prepare("DELETE", `${path}/hostile`),
    run: (attack) => attack.repeat(30, () => attack.request("POST", maps, { body: { metadata: { generateName: "w-" } } })),
  };
};

/** Responds to a review with its uid and the result of `respond`. */
const reviewer = (respond: (uid: string) => object): BackendHandler => ({
  request(request, response) {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const { uid } = (JSON.parse(Buffer.concat(parts).toString()) as { request: { uid: string } }).request;
      const body = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: respond(uid) };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  },
});
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
const patchOf = (count: number): string =>
  base64(Array.from({ length: count }, (_, i) => ({ op: "add", path: "/metadata/annotations", value: { [`a${i}`]: "b" } })));
const stalls: BackendHandler = { request: () => {} };
const pours: BackendHandler = {
  request(_request, response) {
    response.writeHead(200, { "content-type": "application/json" });
    pourInto(response);
  },
};
const breaksOff: BackendHandler = { request: (request) => void request.socket.destroy() };
const drips: BackendHandler = {
  request(_request, response) {
    response.writeHead(200, { "content-type": "application/json" });
    const timer = setInterval(() => response.write(" "), 5);
    response.on("close", () => clearInterval(timer));
  },
};
const says = (text: string): BackendHandler => ({
  request: (_request, response) => void response.writeHead(200, { "content-type": "application/json" }).end(text),
});

const service = `${attacked}/services`;
const apiServices = "/apis/apiregistration.k8s.io/v1/apiservices";
/** An aggregated API of the attacker, with requests and discovery. */
const aggregated = (name: string, handler: BackendHandler): Case => ({
  name,
  user: "platform",
  async setup(attack: Attack) {
    const { port } = await attack.backend(handler);
    await attack.prepare("POST", service, {
      body: { metadata: { name: "api" }, spec: { type: "ExternalName", externalName: "localhost" } },
    });
    const spec = {
      group: "lies.example.com",
      version: "v1",
      groupPriorityMinimum: 10,
      versionPriority: 10,
      insecureSkipTLSVerify: true,
      service: { namespace: "attacked", name: "api", port },
    };
    await attack.prepare("POST", apiServices, { body: { metadata: { name: "v1.lies.example.com" }, spec } });
  },
  async cleanup(attack) {
    await attack.prepare("DELETE", `${apiServices}/v1.lies.example.com`);
    await attack.prepare("DELETE", `${service}/api`);
  },
  run: (attack) =>
    attack.repeat(20, (_lane, round) =>
      attack.request(
        "GET",
        ["/apis/lies.example.com/v1", "/apis/lies.example.com/v1/things?watch=true", "/openapi/v2"][round % 3] as string,
      ),
    ),
});

export const extensionCases: readonly Case[] = [
  objects(
    "a pattern that backtracks",
    "pattern",
    { type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } },
    { a: `${"a".repeat(50_000)}!` },
  ),
  objects(
    "a pattern of large counts",
    "counted",
    { type: "object", properties: { a: { type: "string", pattern: "^(a{0,900}){0,1}b$" } } },
    { a: "a".repeat(50_000) },
  ),
  objects(
    "a rule that loops over an object's list",
    "looped",
    rule("self.a.all(x, self.a.all(y, self.a.all(z, x + y != z + 'N')))", 1),
    { a: Array.from({ length: 300 }, (_, i) => `t${i}`) },
  ),
  objects("100 rules with large texts", "texts", rule("!self.b.matches('(x|y)*zN')", 50), { b: "xy".repeat(20_000) }),
  objects(
    "objects with 50,000 unknown fields",
    "unknown",
    { type: "object" },
    Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`f${i}`, i])),
  ),
  objects(
    "a list that is a set",
    "set",
    { type: "object", properties: { a: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } } } },
    { a: Array.from({ length: 50_000 }, (_, i) => `v${i}`) },
  ),
  defined("definitions, more and more", () => ({ type: "object" })),
  defined("definitions with 5,000 properties", () => ({
    type: "object",
    properties: Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`p${i}`, { type: "string" }])),
  })),
  defined("definitions of 300 levels", () => deep(300)),
  defined("definitions with 500 rules", () => rule("self.a.exists(x, x == 'N' && self.b.size() > N)", 500)),
  defined("definitions with rules of 1,000 levels", () => rule(`${"(".repeat(1000)}true${")".repeat(1000)}`, 1)),
  defined("definitions with rules that cost too much", () =>
    rule("self.a.all(x, self.a.all(y, self.a.all(z, self.a.all(w, x + y != z + w))))", 20),
  ),
  defined("definitions with patterns of 10,000 letters", (at) => ({ type: "string", pattern: `${"(a|b)*".repeat(1500)}${at}` })),
  hooked("a webhook that hangs", "validating", stalls),
  hooked("a webhook that never ends its answer", "validating", drips),
  hooked("a webhook that floods", "validating", pours),
  hooked("a webhook that breaks off", "validating", breaksOff),
  hooked("a webhook that says something else", "validating", says(`{"a":${"[".repeat(100_000)}`)),
  hooked(
    "a webhook that answers for another",
    "validating",
    reviewer(() => ({ uid: "other", allowed: true })),
  ),
  hooked(
    "a webhook that refuses with 1 MB",
    "validating",
    reviewer((uid) => ({ uid, allowed: false, status: { message: "x".repeat(1 << 20) } })),
  ),
  hooked(
    "a webhook that patches 10,000 times",
    "mutating",
    reviewer((uid) => ({ uid, allowed: true, patchType: "JSONPatch", patch: patchOf(10_000) })),
  ),
  aggregated("an aggregated server that hangs", stalls),
  aggregated("an aggregated server that floods", pours),
  aggregated("an aggregated server that breaks off", breaksOff),
  aggregated(
    "an aggregated server that lies",
    says('{"kind":"APIResourceList","resources":[{"name":{}},null,7],"swagger":"2.0","paths":[],"definitions":null}'),
  ),
];

/**
 * No request is served without authorization: for all resources, subresources and verbs of discovery exactly the matching
 * permission is required. The cases are generated from discovery, so that later additions are covered.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestResponse, type TestServer } from "../testing/start-test-server.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined);
});
after(() => server.stop());

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const rbacGroup = "rbac.authorization.k8s.io";
const allVerbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/** Permissions of all authenticated users. Source: the role system:basic-user */
const openToAuthenticated = new Set([
  "create selfsubjectaccessreviews.authorization.k8s.io",
  "create selfsubjectrulesreviews.authorization.k8s.io",
]);

interface Case {
  readonly id: string;
  readonly group: string;
  /** `pods/log` */
  readonly resource: string;
  readonly namespaced: boolean;
  readonly verb: string;
  readonly method: string;
  readonly path: string;
}

test("every resource, verb and subresource is open to its own right and to no other", async () => {
  const cases = await casesOfDiscovery();
  assert.ok(cases.length > 400, `discovery lists ${cases.length} things to do`);
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: "here" } });
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: "there" } });
  const siblings = Map.groupBy(cases, ({ group, resource }) => `${resource.split("/")[0]}.${group}`);
  await eachOf(cases, async (one) => {
    const others = (siblings.get(`${one.resource.split("/")[0]}.${one.group}`) ?? []).map(({ resource }) => resource);
    await grant(one, [...new Set(others)]);
  });
  // The policy is read from caches, one per kind, which are updated independently.
  await eachOf(cases, async (one) => {
    await waitFor(async () => !isRefused(await send(one, as(`exact-${one.id}`)), one), { what: `the right to ${one.id}` });
  });
  const failures: string[] = [];
  await eachOf(cases, async (one) => {
    const open = openToAuthenticated.has(`${one.verb} ${one.resource}.${one.group}`);
    const expect = async (what: string, headers: Record<string, string | undefined>, wanted: "401" | "403" | "passes") => {
      const answer = await send(one, headers);
      const got = answer.code === 401 ? "401" : isRefused(answer, one) ? "403" : "passes";
      if (got !== wanted) failures.push(`${one.method} ${one.path} (${one.verb} ${one.resource}): ${what} ${got}, not ${wanted}`);
    };
    await expect("no credentials", { authorization: undefined }, "403");
    await expect("an unknown token", { authorization: "Bearer unknown" }, "401");
    await expect("no rights", { authorization: "Bearer user-token" }, open ? "passes" : "403");
    await expect("every right but this", as(`near-${one.id}`), open ? "passes" : "403");
  });
  assert.deepEqual(failures, []);
});

/** Paths open to all users, and to all authenticated ones. Source: the roles system:public-info-viewer and system:discovery */
const publicPaths = ["/healthz", "/livez", "/readyz", "/version"];
const discoveryPaths = /^\/(api|apis|openapi)(\/|$)/;

test("every page is open to its own right and to no other", async () => {
  const { paths } = (await server.request("GET", "/")).body as { paths: string[] };
  const pages = [...new Set(["/", "/version", ...paths])].filter((path) => path !== "/debug/pprof/profile");
  await eachOf([...pages.entries()], async ([id, path]) => {
    await createRole(`page-${id}`, [{ nonResourceURLs: [path], verbs: ["get"] }]);
    const neighbours = [`${path}x`, `${path}/*`, path.slice(0, -1)].filter((url) => url.startsWith("/") && url !== path);
    await createRole(`page-near-${id}`, [
      { nonResourceURLs: neighbours, verbs: ["*"] },
      { nonResourceURLs: [path], verbs: ["post", "put", "head", "list"] },
      { apiGroups: ["*"], resources: ["*"], verbs: ["*"] },
    ]);
    await bind(`page-${id}`, "", `page-${id}`, `page-${id}`);
    await bind(`page-near-${id}`, "", `page-near-${id}`, `page-near-${id}`);
  });
  const read = async (path: string, headers: Record<string, string | undefined>): Promise<string> => {
    const { code, body } = await server.request("GET", path, undefined, headers);
    return code === 403 && /cannot get path/.test(body.message ?? "") ? "403" : code === 401 ? "401" : "passes";
  };
  await eachOf([...pages.entries()], async ([id, path]) => {
    await waitFor(async () => (await read(path, as(`page-${id}`))) === "passes", { what: `the right to ${path}` });
  });
  const failures: string[] = [];
  await eachOf([...pages.entries()], async ([id, path]) => {
    const isPublic = publicPaths.includes(path);
    const isDiscovery = isPublic || discoveryPaths.test(path);
    const got = [
      await read(path, { authorization: undefined }),
      await read(path, { authorization: "Bearer unknown" }),
      await read(path, { authorization: "Bearer user-token" }),
      await read(path, as(`page-near-${id}`)),
      await read(path, as(`page-${id}`)),
    ].join(" ");
    const known = isDiscovery ? "passes" : "403";
    const want = [isPublic ? "passes" : "403", "401", known, known, "passes"].join(" ");
    if (got !== want) failures.push(`${path}: ${got}, not ${want}`);
  });
  assert.deepEqual(failures, []);
});

function as(user: string): Record<string, string> {
  return { "impersonate-user": user };
}

interface ApiResource {
  name: string;
  namespaced: boolean;
  verbs: string[];
}

async function casesOfDiscovery(): Promise<Case[]> {
  const { groups } = (await server.request("GET", "/apis")).body as { groups: { versions: { groupVersion: string }[] }[] };
  const prefixes = ["/api/v1", ...groups.flatMap(({ versions }) => versions.map(({ groupVersion }) => `/apis/${groupVersion}`))];
  const cases: Case[] = [];
  for (const prefix of prefixes) {
    const group = prefix === "/api/v1" ? "" : (prefix.split("/")[2] as string);
    const { resources } = (await server.request("GET", prefix)).body as { resources: ApiResource[] };
    for (const { name, namespaced, verbs } of resources) {
      for (const verb of verbs) cases.push({ ...caseOf(prefix, name, namespaced, verb), id: `c${cases.length}`, group });
    }
  }
  return cases;
}

const methods: Readonly<Record<string, string>> = {
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
  deletecollection: "DELETE",
};

function caseOf(prefix: string, resource: string, namespaced: boolean, verb: string): Omit<Case, "id" | "group"> {
  const [parent, subresource] = resource.split("/") as [string, string | undefined];
  const collection = `${prefix}${namespaced ? "/namespaces/here" : ""}/${parent}`;
  const named = subresource !== undefined || ["get", "update", "patch", "delete"].includes(verb);
  const path = `${collection}${named ? "/thing" : ""}${subresource === undefined ? "" : `/${subresource}`}`;
  // A watch from an invalid resourceVersion fails behind the filters.
  const query = verb === "watch" ? "?watch=1&resourceVersion=none" : methods[verb] === undefined ? "" : "?dryRun=All";
  return { resource, namespaced, verb, method: methods[verb] ?? "GET", path: path + query };
}

/** Grants the permission itself to one user, and all neighbouring permissions to another one. */
async function grant(one: Case, siblings: readonly string[]): Promise<void> {
  const { id, group, resource, verb } = one;
  await createRole(`exact-${id}`, [{ apiGroups: [group], resources: [resource], verbs: [verb] }]);
  const others = siblings.filter((sibling) => sibling !== resource);
  const parent = resource.split("/")[0] as string;
  await createRole(`near-${id}`, [
    { apiGroups: [group], resources: [resource], verbs: allVerbs.filter((other) => other !== verb) },
    { apiGroups: [group], resources: [resource], resourceNames: ["other"], verbs: [verb] },
    { apiGroups: [group], resources: [...others, `${parent}/*`, `${resource}x`, `x${parent}`], verbs: ["*"] },
    { apiGroups: [`x${group}`, group === "" ? "core" : ""], resources: ["*"], verbs: ["*"] },
    ...(one.namespaced ? [] : [{ nonResourceURLs: ["*"], verbs: ["*"] }]),
  ]);
  const namespace = one.namespaced ? "here" : "";
  await bind(`exact-${id}`, namespace, `exact-${id}`, `exact-${id}`);
  await bind(`near-${id}`, namespace, `near-${id}`, `near-${id}`);
  if (one.namespaced) await bind(`exact-${id}`, "there", `exact-${id}`, `near-${id}`);
}

async function createRole(name: string, rules: object[]): Promise<void> {
  await created(`${rbac}/clusterroles`, { metadata: { name }, rules });
}

async function bind(name: string, namespace: string, role: string, user: string): Promise<void> {
  const path = namespace === "" ? `${rbac}/clusterrolebindings` : `${rbac}/namespaces/${namespace}/rolebindings`;
  await created(path, {
    metadata: { name },
    roleRef: { apiGroup: rbacGroup, kind: "ClusterRole", name: role },
    subjects: [{ apiGroup: rbacGroup, kind: "User", name: user }],
  });
}

async function created(path: string, object: object): Promise<void> {
  const { code, text } = await server.request("POST", path, object);
  assert.equal(code, 201, text);
}

function send(one: Case, headers: Record<string, string | undefined>): Promise<TestResponse> {
  const patch = one.method === "PATCH" ? { "content-type": "application/merge-patch+json" } : {};
  // In a DELETE body DeleteOptions would override the query's dryRun.
  const body = one.method === "GET" || one.method === "DELETE" ? undefined : {};
  return server.request(one.method, one.path, body, { ...patch, ...headers });
}

/** Whether it is the authorizer's 403; admission and the registry use other texts. */
function isRefused({ code, body }: TestResponse, { verb, resource }: Case): boolean {
  return code === 403 && String(body.message).includes(`cannot ${verb} resource "${resource}" in API group`);
}

/** Runs a limited number concurrently, because of the connection's stream limit. */
async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) await work(items[next++] as T);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

test("AlwaysAllow admits every known user, AlwaysDeny only system:masters, and others after it still decide", async (t) => {
  const jane = { authorization: "Bearer user-token" };
  const list = async (mode: string, headers: Record<string, string | undefined>) => {
    const one = await startTestServer(t, [`--authorization-mode=${mode}`]);
    return [
      (await one.request("GET", "/api/v1/secrets", undefined, headers)).code,
      (await one.request("GET", "/api", undefined, headers)).code,
      (await one.request("GET", "/api/v1/secrets")).code,
      (await one.request("GET", "/api/v1/secrets", undefined, jane)).body.message,
    ];
  };
  assert.deepEqual(await list("AlwaysAllow", jane), [200, 200, 200, undefined]);
  const nobody = { authorization: undefined };
  assert.deepEqual(
    (await list("AlwaysAllow,RBAC", nobody)).slice(0, 2),
    [401, 401],
    "an anonymous user is not allowed everything",
  );
  const refusal = 'secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" at the cluster scope';
  assert.deepEqual(await list("AlwaysDeny", jane), [403, 403, 200, `${refusal}: Everything is forbidden.`]);
  assert.deepEqual(await list("AlwaysDeny,RBAC", jane), [403, 200, 200, `${refusal}: Everything is forbidden.`]);
});

test("with --anonymous-auth=false a request without credentials is 401, also at public pages", async (t) => {
  const closed = await startTestServer(t, ["--anonymous-auth=false"]);
  for (const path of ["/healthz", "/version", "/api/v1/pods", "/nowhere"]) {
    const { code, body } = await closed.request("GET", path, undefined, { authorization: undefined });
    assert.equal(code, 401, path);
    assert.equal(body.reason, "Unauthorized");
  }
});

test("the rules of a user are whole, those of a node are not", async () => {
  const path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
  const statusFor = async (user: string, group: string) => {
    const headers = { "impersonate-user": user, "impersonate-group": group };
    const { body } = await server.request("POST", path, { spec: { namespace: "default" } }, headers);
    assert.deepEqual([body.kind, body.metadata, body.spec], ["SelfSubjectRulesReview", { creationTimestamp: null }, {}]);
    return body.status;
  };
  const whole = await statusFor("alice", "system:authenticated");
  assert.deepEqual([whole.incomplete, whole.evaluationError], [false, undefined]);
  const ofNode = await statusFor("system:node:n1", "system:nodes");
  const text = "node authorizer does not support user rule resolution";
  assert.deepEqual([ofNode.incomplete, ofNode.evaluationError], [true, text]);
});

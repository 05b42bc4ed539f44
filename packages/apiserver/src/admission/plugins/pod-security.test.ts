import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "../../testing/start-test-server.ts";
import { readPodSecurityConfiguration } from "../pod-security/policy.ts";

let server: TestServer;
let directory: string;
const label = (mode: string): string => `pod-security.kubernetes.io/${mode}`;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), "cox-pod-security-"));
  const file = (name: string, content: object): string => {
    writeFileSync(join(directory, name), JSON.stringify(content));
    return join(directory, name);
  };
  const configuration = {
    apiVersion: "pod-security.admission.config.k8s.io/v1beta1",
    kind: "PodSecurityConfiguration",
    exemptions: { usernames: ["trusted"], namespaces: ["free"], runtimeClasses: ["vm"] },
  };
  const admission = file("admission.json", {
    apiVersion: "apiserver.config.k8s.io/v1",
    kind: "AdmissionConfiguration",
    plugins: [{ name: "PodSecurity", configuration }],
  });
  const policy = file("audit.json", { apiVersion: "audit.k8s.io/v1", kind: "Policy", rules: [{ level: "Metadata" }] });
  server = await startTestServer(undefined, [
    `--admission-control-config-file=${admission}`,
    `--audit-policy-file=${policy}`,
    `--audit-log-path=${join(directory, "audit.log")}`,
    "--disable-admission-plugins=ServiceAccount,NamespaceLifecycle",
    "--feature-gates=EphemeralContainers=true",
  ]);
  await server.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", { metadata: { name: "vm" }, handler: "vm" });
});
after(async () => {
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function namespace(name: string, modes: Record<string, string>): Promise<void> {
  const labels = Object.fromEntries(Object.entries(modes).map(([mode, value]) => [label(mode), value]));
  const { code, text } = await server.request("POST", "/api/v1/namespaces", { metadata: { name, labels } });
  assert.equal(code, 201, text);
}
const aPod = (name: string, spec: object = {}): object => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "busybox" }], ...spec },
});
const bad = { hostNetwork: true };
const create = (inNamespace: string, pod: object, headers?: Record<string, string>) =>
  server.request("POST", `/api/v1/namespaces/${inNamespace}/pods`, pod, headers);

async function annotationsOf(name: string): Promise<Record<string, string>> {
  return waitFor(async () => {
    const lines = readFileSync(join(directory, "audit.log"), "utf8").trim().split("\n");
    const event = lines
      .map((line) => JSON.parse(line))
      .findLast(
        ({ objectRef, stage, responseStatus }) => objectRef?.name === name && stage === "ResponseComplete" && responseStatus,
      );
    return event?.annotations;
  });
}
const ours = (annotations: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(annotations).filter(([key]) => key.startsWith("pod-security.")));

test("each mode has its level and version: refusal, warning, audit", async () => {
  await namespace("modes", {
    enforce: "baseline",
    "enforce-version": "v1.22",
    warn: "restricted",
    audit: "restricted",
    "audit-version": "v1.21",
  });
  const refused = await create("modes", aPod("refused", bad));
  assert.equal(refused.code, 403);
  assert.equal(
    refused.body.message,
    'pods "refused" is forbidden: violates PodSecurity "baseline:v1.22": host namespaces (hostNetwork=true)',
  );
  assert.equal(refused.headers["warning"], undefined);
  const escalation = 'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)';
  const rest =
    'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), ' +
    'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")';
  const warned = await create("modes", aPod("warned"));
  assert.equal(warned.code, 201);
  assert.equal(
    String(warned.headers["warning"]).replaceAll("\\", ""),
    `299 - "would violate PodSecurity "restricted:latest": ${escalation}, ` +
      `unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), ${rest}"`,
  );
  // The capabilities check is in the restricted standard since 1.22.
  assert.deepEqual(ours(await annotationsOf("warned")), {
    "pod-security.kubernetes.io/enforce-policy": "baseline:v1.22",
    "pod-security.kubernetes.io/audit-violations": `would violate PodSecurity "restricted:v1.21": ${escalation}, ${rest}`,
  });
  const { text } = await server.request("GET", "/metrics");
  const of = 'request_operation="create",resource="pod",subresource=""';
  for (const [decision, level, version, mode] of [
    ["deny", "baseline", "v1.22", "enforce"],
    ["allow", "baseline", "v1.22", "enforce"],
    ["deny", "restricted", "latest", "warn"],
    ["deny", "restricted", "v1.21", "audit"],
  ]) {
    const series = `pod_security_evaluations_total{decision="${decision}",policy_level="${level}",policy_version="${version}",mode="${mode}",${of}}`;
    assert.ok(text.includes(series), series);
  }
});

test("a workload whose template violates the standard gets a warning and is not refused", async () => {
  await namespace("makers", { enforce: "restricted", warn: "baseline" });
  const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }], ...bad } };
  const selector = { matchLabels: { a: "b" } };
  const cron = {
    schedule: "* * * * *",
    jobTemplate: { spec: { template: { ...template, spec: { ...template.spec, restartPolicy: "Never" } } } },
  };
  for (const [path, object] of [
    ["/apis/apps/v1/namespaces/makers/deployments", { spec: { selector, template } }],
    ["/api/v1/namespaces/makers/podtemplates", { template }],
    ["/apis/batch/v1/namespaces/makers/cronjobs", { spec: cron }],
  ] as const) {
    const { code, headers, text } = await server.request("POST", path, { metadata: { name: "maker" }, ...object });
    assert.equal(code, 201, text);
    assert.equal(
      String(headers["warning"]).replaceAll("\\", ""),
      '299 - "would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)"',
    );
    const labels = { metadata: { labels: { changed: "yes" } } };
    const merge = { "content-type": "application/merge-patch+json" };
    const again = await server.request("PATCH", `${path}/maker`, labels, merge);
    assert.match(String(again.headers["warning"]), /would violate PodSecurity/, "also when its template stays");
  }
});

test("users, namespaces and runtime classes may be exempt, and the audit says why", async () => {
  await namespace("free", { enforce: "restricted" });
  await namespace("strict", { enforce: "restricted" });
  assert.equal((await create("free", aPod("by-namespace", bad))).code, 201);
  assert.equal((await create("strict", aPod("by-class", { ...bad, runtimeClassName: "vm" }))).code, 201);
  const impersonated = { "impersonate-user": "trusted", "impersonate-group": "system:masters" };
  assert.equal((await create("strict", aPod("by-user", bad), impersonated)).code, 201);
  assert.equal((await create("strict", aPod("by-nobody", bad))).code, 403);
  for (const [name, why] of [
    ["by-namespace", "namespace"],
    ["by-class", "runtimeClass"],
    ["by-user", "user"],
  ] as const) {
    assert.deepEqual(ours(await annotationsOf(name)), { "pod-security.kubernetes.io/exempt": why });
  }
  const { text } = await server.request("GET", "/metrics");
  assert.match(text, /^pod_security_exemptions_total\{request_operation="create",resource="pod",subresource=""\} 3$/m);
});

test("a pod of a namespace that cannot be looked up is refused and counted as a fatal error", async () => {
  const { code, body } = await create("missing", aPod("lost"));
  assert.equal(code, 500);
  assert.match(body.message, /failed to lookup namespace missing$/);
  const { text } = await server.request("GET", "/metrics");
  assert.match(text, /^pod_security_errors_total\{fatal="true",request_operation="create",resource="pod",subresource=""\} 1$/m);
});

test("a stricter standard warns about existing pods, about equal ones once", async () => {
  await namespace("grows", {});
  for (const name of ["a", "b", "c"]) await create("grows", aPod(name, bad));
  await create("grows", aPod("d", { hostPID: true, hostNetwork: true, volumes: [{ name: "v", hostPath: { path: "/" } }] }));
  const patch = (level: string, dryRun = "?dryRun=All") =>
    server.request(
      "PATCH",
      `/api/v1/namespaces/grows${dryRun}`,
      { metadata: { labels: { [label("enforce")]: level } } },
      {
        "content-type": "application/merge-patch+json",
      },
    );
  const { headers } = await waitFor(async () => {
    const answer = await patch("baseline");
    return String(answer.headers["warning"]).includes("d: ") && String(answer.headers["warning"]).includes("2 other pods")
      ? answer
      : undefined;
  });
  assert.deepEqual(
    [headers["warning"]]
      .flat()
      .join(", ")
      .split(/, (?=299 - )/)
      .map((text) => text.replaceAll("\\", "")),
    [
      '299 - "existing pods in namespace "grows" violate the new PodSecurity enforce level "baseline:latest""',
      '299 - "a (and 2 other pods): host namespaces"',
      '299 - "d: host namespaces, hostPath volumes"',
    ],
  );
  assert.equal((await patch("privileged")).headers["warning"], undefined);
  const wrong = await patch("strict");
  assert.equal(wrong.code, 422);
  assert.equal(
    wrong.body.message,
    'Namespace "grows" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted',
  );
});

test("an old pod may be updated where that says nothing of security; ephemeral containers are looked at", async () => {
  await namespace("later", {});
  assert.equal((await create("later", aPod("old", bad))).code, 201);
  await server.request(
    "PATCH",
    "/api/v1/namespaces/later",
    { metadata: { labels: { [label("enforce")]: "baseline" } } },
    { "content-type": "application/merge-patch+json" },
  );
  const path = "/api/v1/namespaces/later/pods/old";
  const patch = (body: object, subresource = "") =>
    server.request("PATCH", path + subresource, body, { "content-type": "application/strategic-merge-patch+json" });
  await waitFor(async () => (await create("later", aPod("new", bad))).code === 403);
  assert.equal((await patch({ metadata: { labels: { a: "b" } } })).code, 200);
  assert.equal((await patch({ spec: { containers: [{ name: "c", image: "busybox:2" }] } })).code, 403);
  const debug = { spec: { ephemeralContainers: [{ name: "debug", image: "busybox" }] } };
  const refused = await patch(debug, "/ephemeralcontainers");
  assert.equal(refused.code, 403, refused.text);
  assert.match(refused.body.message, /violates PodSecurity "baseline:latest": host namespaces/);
  assert.equal((await patch({ status: { message: "fine" } }, "/status")).code, 200);
});

for (const { name, configuration, want } of [
  {
    name: "a level that is none",
    configuration: { defaults: { enforce: "x" } },
    want: /defaults.enforce: Invalid value: "x": must be one of privileged, baseline, restricted/,
  },
  {
    name: "a version that is none",
    configuration: { defaults: { "warn-version": "1" } },
    want: /defaults.warn-version: Invalid value: "1": must be "latest" or "v1.x"/,
  },
  {
    name: "an empty user",
    configuration: { exemptions: { usernames: [""] } },
    want: /exemptions.usernames\[0\]: Invalid value: "": username must not be empty/,
  },
  {
    name: "a namespace twice",
    configuration: { exemptions: { namespaces: ["a", "a"] } },
    want: /exemptions.namespaces\[1\]: Duplicate value: "a"/,
  },
  {
    name: "defaults that are a list",
    configuration: { defaults: ["baseline"] },
    want: /defaults: must be an object/,
  },
  {
    name: "users that are no list",
    configuration: { exemptions: { usernames: "a" } },
    want: /exemptions.usernames: must be a list of strings/,
  },
]) {
  test(`a configuration with ${name} ends the start`, () => {
    assert.throws(() => readPodSecurityConfiguration(configuration), want);
  });
}

test("a configuration whose parts are left empty has none of them", () => {
  const { defaults, exemptions } = readPodSecurityConfiguration({ defaults: null, exemptions: { usernames: null } });
  assert.deepEqual(defaults, readPodSecurityConfiguration({}).defaults);
  assert.equal(exemptions.usernames.size, 0);
});

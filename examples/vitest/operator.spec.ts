import { json } from "node:stream/consumers";
import { type Cluster, createCluster } from "@coxswain/testing";
import type { CoreV1 } from "@coxswain/testing/kinds";
import { namespaces, pods, resourceQuotas } from "@coxswain/testing/resources";
import { KubeConfig } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startOperator } from "./operator.ts";
import { definition, type Team } from "./team.ts";

const teams = { group: "example.com", version: "v1", resource: "teams", kind: "Team", namespaced: false };
const aTeam = (name: string, spec: Partial<Team["spec"]> = {}) => ({
  apiVersion: "example.com/v1",
  kind: "Team",
  metadata: { name },
  spec: { owner: "jane", members: ["jane", "ali"], ...spec },
});
const aPod = (name: string) => ({
  metadata: { name, namespace: "team-red" },
  spec: { containers: [{ name: "main", image: "nginx" }] },
});

let prepared: Cluster;
beforeAll(async () => {
  prepared = await createCluster({
    nodes: 1,
    // Rules of definitions are alpha in Kubernetes 1.23.
    apiServerFlags: ["--feature-gates=CustomResourceValidationExpressions=true"],
  });
  await prepared.apply([definition] as never);
});
afterAll(() => prepared?.stop());

/** Each test changes its own copy of the prepared cluster. */
async function copy(): Promise<Cluster> {
  const cluster = await prepared.fork();
  onTestFinished(() => cluster.stop());
  return cluster;
}

async function copyWithOperator(): Promise<Cluster> {
  const cluster = await copy();
  const config = new KubeConfig();
  config.loadFromString(await cluster.kubeconfig());
  const operator = await startOperator(config, { retryMs: 50 });
  onTestFinished(() => operator.stop());
  return cluster;
}

const hasNamespace = ({ status }: Team) => status?.namespace === "team-red";

test("a team gets a namespace in which it may run so many pods", async () => {
  const cluster = await copyWithOperator();
  await cluster.apply([aTeam("red", { pods: 1 })] as never);
  await cluster.eventually<Team>(teams, { name: "red" }, hasNamespace);
  // Until the controller has counted once, no pod is let in.
  await cluster.eventually<CoreV1.ResourceQuota>(
    resourceQuotas,
    { namespace: "team-red", name: "team" },
    ({ status }) => status?.used !== undefined,
  );
  await cluster.client.create<CoreV1.Pod>(pods, aPod("one"));
  await cluster.eventually<CoreV1.Pod>(pods, { namespace: "team-red", name: "one" }, ({ status }) => status?.phase === "Running");
  await expect(cluster.client.create(pods, aPod("two"))).rejects.toThrow(/exceeded quota: team/);
});

test("a change of the team changes its quota; a namespace that somebody deletes comes back", async () => {
  const cluster = await copyWithOperator();
  await cluster.apply([aTeam("red")] as never);
  const made = await cluster.eventually<CoreV1.Namespace>(namespaces, { name: "team-red" }, () => true);
  await cluster.client.patch(teams, { name: "red" }, { type: "merge", body: { spec: { pods: 3 } } });
  const quota = { namespace: "team-red", name: "team" };
  await cluster.eventually<CoreV1.ResourceQuota>(resourceQuotas, quota, ({ spec }) => String(spec?.hard?.["pods"]) === "3");
  await cluster.client.delete(namespaces, { name: "team-red" });
  await cluster.eventually<CoreV1.Namespace>(
    namespaces,
    { name: "team-red" },
    ({ metadata }) => metadata.uid !== made.metadata.uid,
  );
  await cluster.eventually<CoreV1.ResourceQuota>(resourceQuotas, quota, () => true);
});

test("a deleted team is removed after its namespace and its content", async () => {
  const cluster = await copyWithOperator();
  await cluster.apply([aTeam("red")] as never);
  await cluster.eventually<Team>(teams, { name: "red" }, hasNamespace);
  await cluster.client.delete(teams, { name: "red" });
  await cluster.eventuallyGone(teams, { name: "red" });
  const left = await cluster.client.list<CoreV1.Namespace>(namespaces, {});
  expect(left.items.map(({ metadata }) => metadata.name)).not.toContain("team-red");
});

test("a quota that cannot be made is tried again", async () => {
  const cluster = await copyWithOperator();
  const refused = cluster.faults.inject({ method: "POST", path: "/resourcequotas", status: 500, times: 2 });
  await cluster.apply([aTeam("red")] as never);
  await cluster.eventually<Team>(teams, { name: "red" }, hasNamespace);
  expect(refused.hits).toBe(2);
});

test("the definition's rule refuses an owner who is no member", async () => {
  const cluster = await copy();
  await expect(cluster.apply([aTeam("red", { owner: "eve" })] as never)).rejects.toThrow(/the owner must be a member/);
});

test("an admission webhook in this process refuses a name", async () => {
  const cluster = await copy();
  const { url, caBundle } = await cluster.serve("names.test", async (request, response) => {
    const { request: asked } = (await json(request)) as { request: { uid: string; name: string } };
    const answer = { uid: asked.uid, allowed: !asked.name.startsWith("kube"), status: { message: "this name is taken" } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
  });
  const hook = {
    name: "names.example.com",
    clientConfig: { url, caBundle },
    rules: [{ apiGroups: ["example.com"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["teams"] }],
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
  };
  await cluster.apply([
    {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: "names" },
      webhooks: [hook],
    },
  ] as never);
  const refusal = await cluster.waitFor(() =>
    cluster.client.create(teams, aTeam("kube-red"), { dryRun: true }).then(
      () => undefined,
      (err: Error) => err.message,
    ),
  );
  expect(refusal).toMatch(/admission webhook "names.example.com" denied the request: this name is taken/);
});

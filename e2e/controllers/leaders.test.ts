/**
 * Leader election of the real programs: two of each on one API server. Whatever happens to the leader, the API server's request
 * counts are those of a single instance.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  leases,
  namespaces,
  nodes,
  pods,
  replicaSets,
  roleBindings,
  roles,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { startTestServer, type TestServer } from "@coxswain/apiserver/testing/start-test-server";
import { type DaemonProcess, type DaemonProgram, startDaemon, type TestContext } from "../framework/daemon-process.ts";
import { waitFor } from "../framework/wait-for.ts";

const namespace = "locks";
const lockName = "our-lock";

/** @param program the candidates' program @returns functions to start another candidate and to get the leader */
async function electing(t: TestContext, program: Pick<DaemonProgram, "packageName" | "user">, ...flags: string[]) {
  const server = await startTestServer(t, ["--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"]);
  const { client } = server;
  // Their role permits only their own lock.
  const rules = [{ apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create", "get", "update"] }];
  const subjects = [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: program.user }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "lock" };
  await client.create(namespaces, { metadata: { name: namespace } });
  await client.create(roles, { metadata: { namespace, name: "lock" }, rules });
  await client.create(roleBindings, { metadata: { namespace, name: "lock" }, subjects, roleRef });
  const candidates: DaemonProcess[] = [];
  const start = async (): Promise<DaemonProcess> => {
    const started = await startDaemon(t, server, {
      ...program,
      flags: (kubeconfig) => [
        `--kubeconfig=${kubeconfig}`,
        "--secure-port=0",
        "--leader-elect-lease-duration=10s",
        // Long enough that a leader keeps its lease even if the machine delays it by some seconds.
        "--leader-elect-renew-deadline=8s",
        "--leader-elect-retry-period=500ms",
        `--leader-elect-resource-name=${lockName}`,
        `--leader-elect-resource-namespace=${namespace}`,
        ...flags,
      ],
    });
    candidates.push(started);
    return started;
  };
  const leads = (one: DaemonProcess): boolean => one.end() === undefined && one.log().includes("successfully acquired lease");
  return {
    server,
    start,
    /** The candidate that has newly become the leader, after the lease's holder changed. */
    async newLeader(known: readonly DaemonProcess[] = []): Promise<DaemonProcess> {
      const found = await waitFor("a leader", async () => candidates.find((one) => leads(one) && !known.includes(one)));
      const lease = await client.get<Lease>(leases, { namespace, name: lockName });
      assert.equal(lease.spec?.leaseTransitions, known.length);
      return found;
    },
  };
}

/** Number of such requests, from any client and with any response code unless it is among the labels. */
async function countOf(server: TestServer, labels: Readonly<Record<string, string>>): Promise<number> {
  const { text } = await server.request("GET", "/metrics");
  const lines = text.split("\n").filter((line) => line.startsWith("apiserver_request_total{"));
  const wanted = lines.filter((line) => Object.entries(labels).every(([name, value]) => line.includes(`${name}="${value}"`)));
  return wanted.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

const ended = (one: DaemonProcess): Promise<unknown> => waitFor("it to end", async () => one.end() !== undefined);

test("only the leading controller manager works; when it is killed or stopped, another takes over and creates nothing twice", async (t) => {
  const program = { packageName: "controller-manager", user: "system:kube-controller-manager" } as const;
  const { server, start, newLeader } = await electing(
    t,
    program,
    "--controllers=replicaset",
    "--use-service-account-credentials",
  );
  const { client } = server;
  const target = { namespace: "default", name: "web" };
  const scaledTo = async (replicas: number): Promise<void> => {
    await client.patch(replicaSets, target, { type: "merge", body: { spec: { replicas } } });
    await waitFor(`${replicas} pods`, async () => (await client.list(pods, { namespace: "default" })).items.length >= replicas);
  };
  const template = {
    metadata: { labels: { app: "web" } },
    spec: { containers: [{ name: "main", image: "busybox" }] },
  };
  const selector = { matchLabels: { app: "web" } };
  await client.create(replicaSets, { metadata: target, spec: { replicas: 0, selector, template } } as unknown as ReplicaSet);
  await Promise.all([start(), start()]);
  const first = await newLeader();
  await scaledTo(3);

  first.signal("SIGSTOP");
  await scaledTo(5);
  const second = await newLeader([first]);
  first.signal("SIGCONT");
  await ended(first);
  assert.equal(first.end(), 255);
  assert.match(first.log(), /^F.*leaderelection lost/m);

  await start();
  second.signal("SIGKILL");
  await scaledTo(7);
  await newLeader([first, second]);
  assert.equal(await countOf(server, { verb: "POST", resource: "pods" }), 7);
});

test("one scheduler is active: when it is killed or stopped the next continues, and nothing is bound twice", async (t) => {
  const program = { packageName: "scheduler", user: "system:kube-scheduler" } as const;
  const { server, start, newLeader } = await electing(t, program);
  const { client } = server;
  const allocatable = { cpu: "8", memory: "8Gi", pods: "110" };
  const status = { allocatable, capacity: allocatable } as unknown as Node["status"];
  await client.create<Node>(nodes, { metadata: { name: "n" }, spec: {}, status });
  const bound = async (name: string): Promise<void> => {
    const spec = { containers: [{ name: "main", image: "busybox" }] };
    await client.create(pods, { metadata: { namespace: "default", name }, spec });
    const nodeOf = async () => (await client.get<Pod>(pods, { namespace: "default", name })).spec.nodeName;
    await waitFor(`${name} to be bound`, async () => (await nodeOf()) === "n");
  };
  await Promise.all([start(), start()]);
  const first = await newLeader();
  await bound("a");

  first.signal("SIGSTOP");
  await bound("b");
  const second = await newLeader([first]);
  first.signal("SIGCONT");
  await ended(first);
  assert.equal(first.end(), 1);
  assert.match(first.log(), /^E.*Leaderelection lost/m);

  await start();
  second.signal("SIGKILL");
  await bound("c");
  await newLeader([first, second]);
  const bindings = { verb: "POST", resource: "pods", subresource: "binding" };
  assert.equal(await countOf(server, { ...bindings, code: "201" }), 3);
  // When the first continues, it may read that b was created before its timer says that the lease is lost. A candidate that
  // worked without the lease would be refused for each of the pods.
  assert.ok((await countOf(server, bindings)) <= 4);
});

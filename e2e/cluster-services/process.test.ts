/**
 * The process coxswain-services in a complete cluster: its CPU and memory when idle, its listening sockets, and that each of its
 * permissions is used. It is restarted once, and killed in the long form.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { request } from "node:https";
import { test } from "node:test";
import { auditLog } from "@coxswain/dev-cluster/daemons";
import { runningPid } from "@coxswain/dev-cluster/processes";
import { readAuditLog } from "../framework/audit.ts";
import { getJson, isNotFound, kubectl, settings } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { lookedAt, waitFor } from "../framework/wait-for.ts";
import { endpointOf, listeningOn } from "./listeners.ts";
import { type RoleView, unusedRights } from "./used-rights.ts";

const name = "coxswain-services";
const dnsPort = 10053;
const metricsPort = 10262;

function pidOfServices(): number {
  const pid = runningPid(settings, name);
  assert.ok(pid !== undefined, `${name} runs`);
  return pid;
}

/** CPU seconds of a process, without its children. Linux counts a hundred ticks a second on all machines. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const residentMib = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

test("an idle process takes little of a core and of the memory", async (t) => {
  const pid = pidOfServices();
  // 90 MiB and 1 % with slack for what the tests before have left (docs/benchmarks.md has the figures).
  const shares: number[] = [];
  await waitFor(
    "three seconds in which the process used less than 3 % of a core, in 120 MiB",
    async () => {
      const before = cpuSeconds(pid);
      const begun = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 3_000)); // what is measured is time
      shares.push((cpuSeconds(pid) - before) / ((performance.now() - begun) / 1_000));
      return (shares.at(-1) as number) < 0.03 && residentMib(pid) < 120;
    },
    { timeoutMs: 150_000 },
  );
  t.diagnostic(`${residentMib(pid).toFixed(0)} MiB, shares of a core: ${shares.map((share) => share.toFixed(3)).join()}`);
});

test("it listens on the node's address for DNS and the metrics API, on loopback for its own pages, and nowhere else", () => {
  const pid = pidOfServices();
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return []; // closed meanwhile
      }
    }),
  );
  const listening = (["tcp", "tcp6", "udp", "udp6"] as const).flatMap((protocol) =>
    listeningOn(protocol, readFileSync(`/proc/${pid}/net/${protocol}`, "utf8"), inodes),
  );
  assert.deepEqual(
    listening.toSorted(),
    [
      `tcp ${endpointOf("127.0.0.1", settings.ports.services)}`,
      `tcp ${endpointOf(settings.nodeAddress, dnsPort)}`,
      `tcp ${endpointOf(settings.nodeAddress, metricsPort)}`,
      `udp ${endpointOf(settings.nodeAddress, dnsPort)}`,
    ].toSorted(),
  );
});

test("the kernel keeps silent and half-closed TCP connections as long as with kube-proxy", () => {
  const timeout = (state: string) => Number(readFileSync(`/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_${state}`, "utf8"));
  assert.deepEqual([timeout("established"), timeout("close_wait")], [24 * 3_600, 3_600]);
});

/** Rights that no cluster without the flag uses, or that show elsewhere than in requests of the process. */
const usedOtherwise: Readonly<Record<string, string>> = {
  "get nodes/metrics": "asked of the API server by the kubelet",
  "leases in coxswain-load-balancers": "--load-balancer-pool: announcer.test.ts",
};

test("every right of its roles is used", async (t) => {
  if (!existsSync(auditLog(settings))) return t.skip("this cluster has no audit: COX_AUDIT_POLICY");
  const namespace = await newNamespace(t, "services");
  const before = pidOfServices();
  await claimAndRelease(namespace);
  await kubectl("-n", namespace, "create", "service", "loadbalancer", "lb", "--tcp=8099:80");
  await waitFor("the LoadBalancer has an address", async () => {
    const { status } = await getJson<{ status: { loadBalancer?: { ingress?: unknown[] } } }>("service", "lb", "-n", namespace);
    return status.loadBalancer?.ingress?.length === 1;
  });
  await waitFor("metrics of nodes", () => kubectl("top", "nodes").then(() => true), { retry: () => true });
  await requestWithToken();
  // What others have changed of its objects is put right.
  const system = ["-n", "kube-system", "patch", "--type=merge"];
  await kubectl(...system, "endpoints", "coxswain-metrics", "-p", '{"subsets":[]}');
  const slices = await getJson<{ items: { metadata: { name: string } }[] }>(
    ...["endpointslices", "-n", "kube-system", "-l", "kubernetes.io/service-name=kube-dns"],
  );
  await kubectl(...system, "endpointslice", slices.items[0]?.metadata.name ?? "", "-p", '{"endpoints":[]}');
  // Its end and its next start: the DNS server is withdrawn, and the metrics API gets another certificate.
  process.kill(before, "SIGTERM");
  await waitFor("the next process", async () => ![undefined, before].includes(runningPid(settings, name)));

  const { items } = await getJson<{ items: RoleView[] }>("clusterroles,roles", "-A");
  const roles = items.filter((role) => role.metadata.name.startsWith(name));
  assert.ok(roles.length >= 8, "a role for each part");
  await waitFor("all rights were used", async () => {
    const events = readAuditLog(auditLog(settings)).filter(({ user }) => user.username.startsWith(`system:${name}:`));
    const unused = [...new Set(roles.flatMap((role) => unusedRights(role, events)))].filter(
      (right) => !Object.keys(usedOtherwise).some((known) => right.endsWith(known)),
    );
    lookedAt(unused);
    return unused.length === 0;
  });
});

const long = process.env["COX_TEST_LONG"] === undefined && "long: only with ./cox test --long";

test("after the process was killed kubectl top and an autoscaler have metrics again", { skip: long }, async (t) => {
  const namespace = await newNamespace(t, "metrics");
  const resources = { requests: { cpu: "10m" } };
  const container = { name: "main", image: "busybox:1.35", command: ["sh", "-c", "while :; do sleep 0.05; done"], resources };
  const labels = { app: "load" };
  const deployment = {
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "load", namespace } },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [container] } } },
  };
  await kubectl("apply", "-f", "-", { input: JSON.stringify(deployment) });
  await kubectl("-n", namespace, "autoscale", "deployment", "load", "--cpu-percent=5000", "--min=1", "--max=2");
  const pods = ["get", "--raw", `/apis/metrics.k8s.io/v1beta1/namespaces/${namespace}/pods`];
  const measuredAt = async (): Promise<number> => {
    const { items } = JSON.parse(await kubectl(...pods)) as { items: { timestamp: string }[] };
    return Math.max(0, ...items.map(({ timestamp }) => Date.parse(timestamp)));
  };
  const isScaling = async (): Promise<boolean> => {
    const { status } = await getJson<{ status?: { currentMetrics?: unknown[] } }>(
      "hpa.v2beta2.autoscaling",
      "load",
      "-n",
      namespace,
    );
    return (status?.currentMetrics ?? []).some((metric) => JSON.stringify(metric).includes("averageUtilization"));
  };
  const options = { timeoutMs: 240_000, retry: () => true };
  await waitFor("metrics of the pod", async () => (await measuredAt()) > 0, options);
  await waitFor("the autoscaler has seen them", isScaling, options);

  const pid = pidOfServices();
  const killedAt = Date.now();
  process.kill(pid, "SIGKILL");
  const after = (what: string) => t.diagnostic(`${what} ${((Date.now() - killedAt) / 1_000).toFixed(1)} s after the kill`);
  await waitFor("the next process", async () => ![undefined, pid].includes(runningPid(settings, name)));
  after("next process");
  await waitFor("metrics that are newer than the kill", async () => (await measuredAt()) > killedAt, options);
  after("metrics");
  assert.match(await kubectl("top", "pods", "-n", namespace, "--no-headers"), /^load-\S+ +\d+m +\d+Mi/);
  // A container that has just started has a rate after one sample, the node only after two.
  const nodesTop = () => kubectl("top", "nodes", "--no-headers");
  assert.match(await waitFor("metrics of the node", nodesTop, options), / \d+m +\d+% /);
  // Its condition says whether its last look, each 15 s, had metrics.
  await waitFor(
    "the autoscaler has looked after that",
    async () => {
      const { status } = await getJson<{ status: { conditions: { type: string; status: string }[] } }>(
        ...["hpa.v2beta2.autoscaling", "load", "-n", namespace],
      );
      return status.conditions.some((one) => one.type === "ScalingActive" && one.status === "True") && (await isScaling());
    },
    options,
  );
  after("autoscaler");
});

/** A claim that is refused, again and again, and one whose volume is made and deleted. */
async function claimAndRelease(namespace: string): Promise<void> {
  const claim = (claimName: string, mode: string) => ({
    ...{ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: claimName, namespace } },
    spec: { accessModes: [mode], resources: { requests: { storage: "1Mi" } } },
  });
  const pod = (claimName: string) => ({
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name: claimName, namespace } },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [
        { name: "main", image: "busybox:1.35", command: ["sleep", "3600"], volumeMounts: [{ name: "data", mountPath: "/data" }] },
      ],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName } }],
    },
  });
  const items = [claim("data", "ReadWriteOnce"), pod("data"), claim("refused", "ReadWriteMany"), pod("refused")];
  await kubectl("apply", "-f", "-", { input: JSON.stringify({ apiVersion: "v1", kind: "List", items }) });
  await kubectl("-n", namespace, "wait", "--for=condition=Ready", "pod/data", "--timeout=120s");
  const refusals = ["events", "-n", namespace, "--field-selector=involvedObject.name=refused,reason=ProvisioningFailed"];
  await waitFor("the refusal is an event", async () => (await getJson<{ items: unknown[] }>(...refusals)).items.length > 0);
  await kubectl("-n", namespace, "annotate", "pvc/refused", "again=yes");
  const { spec } = await getJson<{ spec: { volumeName: string } }>("pvc", "data", "-n", namespace);
  await kubectl("-n", namespace, "delete", "pod/data", "pvc/data");
  await waitFor("its volume is deleted", async () => {
    try {
      await getJson("pv", spec.volumeName);
      return false;
    } catch (err) {
      if (isNotFound(err as Error)) return true;
      throw err;
    }
  });
}

/** An unknown token: the process sends it to the API server for review. */
const requestWithToken = (): Promise<void> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: "Bearer nobody" };
    const path = "/apis/metrics.k8s.io/v1beta1/nodes";
    request({ host: settings.nodeAddress, port: metricsPort, path, headers, rejectUnauthorized: false }, (response) => {
      response.resume().on("end", () => (response.statusCode === 401 ? resolve() : reject(new Error(`${response.statusCode}`))));
    })
      .on("error", reject)
      .end();
  });

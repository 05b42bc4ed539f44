import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { MachineCluster, minutes } from "./cluster.ts";
import { importImages, whyNoMachine } from "./machine.ts";

/** A folder of upstream's kube-apiserver, kube-controller-manager, kube-scheduler and kubelet, 1.20 or later, of the same architecture. */
const upstream = process.env["COX_UPSTREAM_PROGRAMS"];
const skip =
  whyNoMachine() ??
  (process.env["COX_TEST_LONG"] === undefined
    ? "a long form: COX_TEST_LONG"
    : upstream === undefined
      ? "COX_UPSTREAM_PROGRAMS names no folder"
      : undefined);
const ours = "/opt/coxswain/bin";
const theirs = "/opt/upstream";

/** Each with its machine, in the order of an upgrade; of a downgrade the other way round. */
const daemons = [
  ["cp1", "kube-apiserver"],
  ["cp1", "kube-controller-manager"],
  ["cp1", "kube-scheduler"],
  ["cp1", "kubelet"],
  ["n1", "kubelet"],
] as const;
type Daemon = (typeof daemons)[number];
/** In versions that all of them have, whatever kubectl remembers of the others. */
const annotated = [
  "cronjobs.v1beta1.batch/often",
  "poddisruptionbudgets.v1beta1.policy/web",
  "horizontalpodautoscalers.v1.autoscaling/web",
];
const kinds = [
  ...annotated.map((name) => name.slice(0, name.indexOf("/"))),
  ...[
    "deployments",
    "leases",
    "csr",
    "endpointslices.v1beta1.discovery.k8s.io",
    "flowschemas.v1beta1.flowcontrol.apiserver.k8s.io",
  ],
];
/** Where each says that it is well. */
const health: Readonly<Record<Daemon[1], string>> = {
  "kube-apiserver": "https://127.0.0.1:6443/readyz",
  "kube-controller-manager": "https://127.0.0.1:10257/healthz",
  "kube-scheduler": "https://127.0.0.1:10259/healthz",
  kubelet: "http://127.0.0.1:10248/healthz",
};

describe("the daemons of a living cluster are replaced by upstream's, and those by ours", { skip }, () => {
  let cluster: MachineCluster;
  let pods = "";
  const kubectl = (...args: string[]) => cluster.kubectl("cp1", ...args);

  /** One daemon after the other, each when the one before is well. */
  const replace = async (order: readonly Daemon[], folder: string): Promise<void> => {
    for (const [name, daemon] of order) {
      const machine = cluster.machine(name);
      await machine.shell(`ln --symbolic --force ${folder}/${daemon} /usr/bin/${daemon}; systemctl restart ${daemon}`);
      const isWell = async (seen: (text: string) => string): Promise<boolean> =>
        seen(await machine.run("curl", "--silent", "--insecure", health[daemon])) === "ok" &&
        (await machine.shell(`tr '\\0' ' ' </proc/$(systemctl show --property=MainPID --value ${daemon})/cmdline`)).includes(
          folder === ours ? "/opt/coxswain/lib/" : `/usr/bin/${daemon} `,
        );
      await waitFor(isWell, { timeoutMs: minutes(2), retry: hasExitCode, what: `${daemon} of ${folder} on ${name}` }).catch(
        async (err: Error) => {
          const log = await machine.shell(`journalctl --unit ${daemon} --output=cat | tail -20`);
          throw new Error(`${err.message}\n${log}`);
        },
      );
    }
  };
  const whenVersion = (pattern: RegExp): Promise<unknown> =>
    waitFor(
      async (seen) => {
        const lines = seen(await kubectl("get", "nodes", "--no-headers"))
          .trim()
          .split("\n");
        return lines.length === 2 && lines.every((line) => / Ready /.test(line) && pattern.test(line));
      },
      { timeoutMs: minutes(2), retry: hasExitCode, what: `kubelets ${pattern}` },
    );
  /** Names, container IDs and restarts. */
  const containers = (selector = "untouched=true"): Promise<string> =>
    kubectl(
      "get",
      "pods",
      `--selector=${selector}`,
      "--output=jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].containerID} {.status.containerStatuses[*].restartCount}{'\\n'}{end}",
    );
  /** What the cluster has is read, changed and carried out. */
  const works = async (round: string): Promise<void> => {
    await kubectl("create", "deployment", `new-${round}`, "--image=busybox:1.35", "--replicas=2", "--", "sleep", "3600");
    await kubectl("wait", "--for=condition=Available", "--timeout=180s", `deployment/new-${round}`);
    await kubectl("create", "job", `job-${round}`, "--image=busybox:1.35", "--", "echo", round);
    await kubectl("wait", "--for=condition=Complete", "--timeout=120s", `job/job-${round}`);
    assert.equal(await kubectl("logs", `job/job-${round}`), `${round}\n`);
    for (const kind of kinds) await kubectl("get", kind, "--all-namespaces");
    assert.equal(await containers(), pods);
  };

  before(async () => {
    cluster = await MachineCluster.start();
    await cluster.boot("cp1");
    await cluster.boot("n1");
    for (const [name, daemon] of daemons) {
      const machine = cluster.machine(name);
      // Upstream's kubelet does not start without the kernel's log.
      await machine.shell(`mkdir -p ${theirs}; [ -e /dev/kmsg ] || mknod /dev/kmsg c 1 11`);
      cpSync(join(upstream as string, daemon), machine.path(`${theirs}/${daemon}`));
    }
    await cluster.init("cp1");
    await cluster.joinNodes("cp1", "n1");
    await importImages(cluster.machine("cp1"));
    await cluster.whenReady("cp1", "cp1", "n1");
  });
  after(() => cluster?.remove());

  test("upstream's take over", async () => {
    await replace(daemons.toReversed(), theirs);
    await whenVersion(/ v1\.2\d\.\d+$/);
    await cluster.machine("cp1").write("/root/workloads.json", JSON.stringify(workloads));
    await kubectl("create", "--filename", cluster.machine("cp1").path("/root/workloads.json"));
    await kubectl("rollout", "status", "deployment/web", "--timeout=180s");
    await kubectl("rollout", "status", "statefulset/db", "--timeout=180s");
    await kubectl("rollout", "status", "daemonset/each", "--timeout=180s");
    pods = await containers();
    assert.equal(pods.trim().split("\n").length, 7);
    await works("theirs");
  });

  test("upgrade lists the versions, and leaves daemons of others alone in one line with its remedy", async () => {
    const version = (await cluster.machine("n1").shell("/usr/bin/kubelet --version")).trim().replace("Kubernetes ", "");
    const before = await cluster.machine("cp1").shell("ls -l /usr/bin/kube*");
    const left = new RegExp(
      `^error: /usr/bin/kubelet \\(Kubernetes ${version}\\) was not set up by coxswain init or join.*docs/installing\\.md, In place of upstream's daemons$`,
      "m",
    );
    await assert.rejects(
      cluster.machine("cp1").run(`${ours}/coxswain`, "upgrade", "plan"),
      (err: { stdout: string; stderr: string }) => {
        assert.match(err.stdout, /^archive of this machine +<none> +0\.1\.0$/m);
        assert.match(err.stdout, new RegExp(`^kube-apiserver ${cluster.address("cp1")}:6443 +${version} +v1\\.23\\.0$`, "m"));
        assert.match(err.stdout, new RegExp(`^kubelet of n1 +${version} +v1\\.23\\.0$`, "m"));
        if (version.startsWith("v1.20."))
          assert.match(err.stderr, /^error: v1\.23\.0 is not next to v1\.20\.\d+: go by way of 1\.21$/m);
        assert.match(err.stderr, left);
        return true;
      },
    );
    for (const [name, ...words] of [
      ["cp1", "apply"],
      ["cp1", "apply", "--dry-run"],
      ["n1", "node", "--force"],
    ] as const)
      await assert.rejects(cluster.machine(name).run(`${ours}/coxswain`, "upgrade", ...words), { stdout: "", stderr: left });
    assert.equal(await cluster.machine("cp1").shell("ls -l /usr/bin/kube*"), before);
  });

  test("ours take over, in the order of an upgrade: pods are untouched, objects are kept", async () => {
    await replace(daemons, ours);
    await whenVersion(/ v1\.23\.0$/);
    await works("ours");
    assert.match(await kubectl("get", "deployments"), /^new-theirs +2\/2 /m);
    await kubectl("scale", "deployment/new-theirs", "--replicas=3");
    await kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "--timeout=120s", "deployment/new-theirs");
    // Stored by ours.
    for (const name of annotated) await kubectl("annotate", ...name.split("/"), "by=ours");
  });

  test("upstream's again, in the order of a downgrade", async () => {
    await replace(daemons.toReversed(), theirs);
    await whenVersion(/ v1\.2\d\.\d+$/);
    await works("again");
    assert.match(await kubectl("get", "deployments"), /^new-theirs +3\/3 /m);
    for (const name of annotated)
      assert.equal(await kubectl("get", ...name.split("/"), "--output=jsonpath={.metadata.annotations.by}"), "ours");
  });

  test("and ours", async () => {
    await replace(daemons, ours);
    await whenVersion(/ v1\.23\.0$/);
    assert.match(
      await cluster.machine("cp1").run(`${ours}/coxswain`, "upgrade", "plan"),
      /^this machine has \/opt\/coxswain already$/m,
    );
    await works("last");
  });
});

const labels = { untouched: "true" };
const template = (app: string, more = {}) => ({
  metadata: { labels: { ...labels, app } },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        ...{ name: "main", image: "busybox:1.35", command: ["sleep", "100000"] },
        readinessProbe: { exec: { command: ["true"] }, periodSeconds: 5 },
        livenessProbe: { exec: { command: ["true"] }, periodSeconds: 5 },
        resources: { requests: { cpu: "1m" }, limits: { memory: "64Mi" } },
      },
    ],
    ...more,
  },
});
const setOf = (kind: string, app: string, spec: object, more = {}) => ({
  ...{ apiVersion: "apps/v1", kind, metadata: { name: app } },
  spec: { ...spec, selector: { matchLabels: { app } }, template: template(app, more) },
});
const workloads = {
  apiVersion: "v1",
  kind: "List",
  items: [
    setOf("Deployment", "web", { replicas: 3 }),
    setOf("StatefulSet", "db", { replicas: 2, serviceName: "db" }),
    setOf("DaemonSet", "each", {}, { tolerations: [{ operator: "Exists" }] }),
    {
      ...{ apiVersion: "batch/v1beta1", kind: "CronJob", metadata: { name: "often" } },
      spec: {
        schedule: "0 0 1 1 *",
        jobTemplate: {
          spec: {
            template: {
              spec: { restartPolicy: "Never", containers: [{ name: "main", image: "busybox:1.35", command: ["true"] }] },
            },
          },
        },
      },
    },
    {
      ...{ apiVersion: "policy/v1beta1", kind: "PodDisruptionBudget", metadata: { name: "web" } },
      spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
    },
    {
      ...{ apiVersion: "autoscaling/v1", kind: "HorizontalPodAutoscaler", metadata: { name: "web" } },
      spec: { minReplicas: 3, maxReplicas: 3, scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" } },
    },
    {
      ...{ apiVersion: "v1", kind: "Service", metadata: { name: "web" } },
      spec: { selector: { app: "web" }, ports: [{ port: 80 }] },
    },
  ],
};

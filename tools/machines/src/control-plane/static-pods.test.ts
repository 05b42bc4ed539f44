import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { clusterSettings, nodeSettings } from "../config/settings.ts";
import type { WantedFile } from "../host/files.ts";
import { controlPlaneDaemons, etcdFlags, peerUrl } from "./flags.ts";
import { daemonPod, etcdPod } from "./static-pods.ts";

const cluster = clusterSettings({});
const node = { ...nodeSettings({ isControlPlane: true }, { hostName: "m1", address: "10.0.0.1" }), bindPort: 7443 };
const podOf = ({ content }: WantedFile): Pod => JSON.parse(content) as Pod; // cast: what the function under test has written
const probe = (host: string, port: number, path: string, scheme: string) => ({ host, port, path, scheme });

test("a member of etcd serves its machine, and others at its address, and joins the cluster that is named", () => {
  const flags = etcdFlags(cluster, node, { state: "existing", members: { m0: "https://10.0.0.9:2380", m1: peerUrl(node) } });
  assert.partialDeepStrictEqual(flags, {
    name: "m1",
    "data-dir": cluster.etcdDataDir,
    "advertise-client-urls": "https://10.0.0.1:2379",
    "listen-client-urls": "https://127.0.0.1:2379,https://10.0.0.1:2379",
    "listen-metrics-urls": "http://127.0.0.1:2381",
    "initial-advertise-peer-urls": "https://10.0.0.1:2380",
    "listen-peer-urls": "https://10.0.0.1:2380",
    "initial-cluster": "m0=https://10.0.0.9:2380,m1=https://10.0.0.1:2380",
    "initial-cluster-state": "existing",
    "client-cert-auth": "true",
    "peer-client-cert-auth": "true",
  });
  assert.equal(etcdFlags(cluster, node, { state: "new", members: {} })["initial-cluster-state"], "new");
});

test("etcd's pod writes its data only, and has time to start", () => {
  const file = etcdPod(cluster, node, { state: "new", members: {} });
  assert.deepEqual([file.path, file.mode], ["/etc/kubernetes/manifests/etcd.yaml", 0o600]);
  const { metadata, spec } = podOf(file);
  assert.deepEqual(metadata, { labels: { component: "etcd", tier: "control-plane" }, name: "etcd", namespace: "kube-system" });
  const [container] = spec.containers;
  assert.deepEqual(container?.volumeMounts, [
    { mountPath: "/etc/kubernetes/pki/etcd", name: "etcd-certs", readOnly: true },
    { mountPath: cluster.etcdDataDir, name: "etcd-data" },
  ]);
  assert.deepEqual(spec.volumes, [
    { hostPath: { path: "/etc/kubernetes/pki/etcd", type: "DirectoryOrCreate" }, name: "etcd-certs" },
    { hostPath: { path: cluster.etcdDataDir, type: "DirectoryOrCreate" }, name: "etcd-data" },
  ]);
  const often = {
    initialDelaySeconds: 10,
    periodSeconds: 10,
    timeoutSeconds: 15,
    httpGet: probe("127.0.0.1", 2381, "/health", "HTTP"),
  };
  assert.deepEqual(container?.livenessProbe, { ...often, failureThreshold: 8 });
  assert.deepEqual(container?.startupProbe, { ...often, failureThreshold: 24 });
  assert.equal(container?.readinessProbe, undefined);
  assert.deepEqual(container?.resources, { requests: { cpu: "100m" } });
  assert.equal(container?.command?.[0], "etcd");
});

test("the daemons' pods are on the host's network, of its highest priority, and have their own probes and files", () => {
  const pods = controlPlaneDaemons.map((name) => podOf(daemonPod(name, [name, "--v=2"], node)));
  assert.deepEqual(
    pods.map(({ metadata, spec: { containers, hostNetwork, priorityClassName, securityContext } }) => [
      ...[
        metadata.name,
        containers[0]?.image?.replace(/:.*/, ""),
        containers[0]?.command?.join(" "),
        containers[0]?.resources?.requests?.["cpu"],
      ],
      ...[hostNetwork, priorityClassName, securityContext?.seccompProfile?.type],
    ]),
    ["250m", "200m", "100m"].map((cpu, i) => {
      const name = controlPlaneDaemons[i] ?? "";
      return [name, `k8s.gcr.io/${name}`, `${name} --v=2`, cpu, true, "system-node-critical", "RuntimeDefault"];
    }),
  );
  assert.deepEqual(
    pods.map(({ spec }) => spec.containers[0]?.livenessProbe?.httpGet),
    [
      probe("10.0.0.1", 7443, "/livez", "HTTPS"),
      probe("127.0.0.1", 10257, "/healthz", "HTTPS"),
      probe("127.0.0.1", 10259, "/healthz", "HTTPS"),
    ],
  );
  assert.deepEqual(
    pods.map(({ spec }) => spec.containers[0]?.readinessProbe),
    [
      { failureThreshold: 3, periodSeconds: 1, timeoutSeconds: 15, httpGet: probe("10.0.0.1", 7443, "/readyz", "HTTPS") },
      undefined,
      undefined,
    ],
  );
  assert.deepEqual(
    pods.map(({ spec }) => spec.volumes?.map(({ hostPath }) => `${hostPath?.path} ${hostPath?.type}`)),
    [
      ["/etc/ssl/certs DirectoryOrCreate", "/etc/kubernetes/pki DirectoryOrCreate"],
      [
        "/etc/ssl/certs DirectoryOrCreate",
        "/etc/kubernetes/pki DirectoryOrCreate",
        "/etc/kubernetes/controller-manager.conf FileOrCreate",
      ],
      ["/etc/kubernetes/scheduler.conf FileOrCreate"],
    ],
  );
});

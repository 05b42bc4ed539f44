import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeSettings } from "../config/settings.ts";
import { etcdUnit, initialClusterIn } from "../control-plane/etcd-unit.ts";
import { kubeletFiles, kubeletFlags } from "./kubelet-config.ts";
import { ownSettings } from "./own-settings.ts";

const facts = { hostName: "host", address: "10.0.0.1" };
const options = { cgroupDriver: "systemd", hasServingCertificate: true, hostName: facts.hostName } as const;

for (const { name, registration = {}, endpoint = {} } of [
  { name: "defaults" },
  { name: "another port and address", endpoint: { bindPort: 8443, advertiseAddress: "10.0.0.2" } },
  { name: "another name and runtime", registration: { name: "m1", criSocket: "unix:///run/crio.sock" } },
  { name: "no taint", registration: { taints: [] } },
  {
    name: "taints with and without a value",
    registration: {
      taints: [
        { key: "example.com/a", value: "x", effect: "NoExecute" },
        { key: "b", effect: "NoSchedule" },
      ],
    },
  },
  {
    name: "flags of the kubelet, also in place of those that are derived from fields",
    registration: { kubeletExtraArgs: { "fail-swap-on": "false", "node-labels": 'a="$1",b=2', "node-ip": "10.0.0.9" } },
  },
])
  test(`a machine set up with ${name} keeps its settings when a later command omits them`, () => {
    const asked = nodeSettings({ registration, endpoint, isControlPlane: true }, facts);
    const flags = kubeletFlags(asked, options);
    const environment = kubeletFiles({}, flags).find(({ path }) => path.endsWith("kubeadm-flags.env"))?.content;
    const server = { "advertise-address": asked.advertiseAddress, "secure-port": String(asked.bindPort) };
    const { nodeRegistration, localAPIEndpoint } = ownSettings(server, environment);
    const again = nodeSettings({ registration: nodeRegistration, endpoint: localAPIEndpoint, isControlPlane: true }, facts);
    assert.deepEqual(kubeletFlags(again, options), flags);
    assert.deepEqual(again.taints, asked.taints);
    assert.deepEqual([again.name, again.advertiseAddress, again.bindPort], [asked.name, asked.advertiseAddress, asked.bindPort]);
  });

test("a machine whose set-up stopped before its API server and kubelet has the defaults", () => {
  const { nodeRegistration, localAPIEndpoint } = ownSettings({}, undefined);
  const settings = nodeSettings({ registration: nodeRegistration, endpoint: localAPIEndpoint, isControlPlane: true }, facts);
  assert.deepEqual(settings, nodeSettings({ isControlPlane: true }, facts));
});

test("etcd's initial members are read from its drop-in", () => {
  const cluster = { etcdDataDir: "/var/lib/etcd", extraFlags: { etcd: {} } } as never;
  const node = nodeSettings({ isControlPlane: true }, facts);
  const initial = { state: "existing", members: { m1: "https://10.0.0.2:2380", host: "https://10.0.0.1:2380" } } as const;
  assert.deepEqual(initialClusterIn(etcdUnit(cluster, node, initial, "/usr/bin/etcd").content), initial);
  assert.equal(initialClusterIn("[Service]\n"), undefined);
});

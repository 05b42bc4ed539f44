import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { forbidden, internalError, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { configMaps } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { kubeadmConfigName, kubeletConfigName } from "./bootstrap-objects.ts";
import { readObject, storedConfiguration } from "./stored-configuration.ts";

type Stored = Readonly<Record<string, Readonly<Record<string, string>> | Error>>;

/** A client of a cluster with these ConfigMaps: their data, or why they are not read. */
const clientOf = (stored: Stored): Client =>
  ({
    async get(_: unknown, { name }: { name: string }) {
      const found = stored[name];
      if (found === undefined) throw notFound(configMaps, name);
      if (found instanceof Error) throw found;
      return { metadata: { name }, data: found };
    },
  }) as unknown as Client; // cast: nothing else is called

const cluster = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nclusterName: c1\n";
const both = (config: Readonly<Record<string, string>>, kubelet: Readonly<Record<string, string>>): Stored => ({
  [kubeadmConfigName]: config,
  [kubeletConfigName]: kubelet,
});

test("the configuration of the cluster and that of its kubelets are read", async () => {
  const found = await storedConfiguration(clientOf(both({ ClusterConfiguration: cluster }, { kubelet: "clusterDomain: d\n" })));
  assert.deepEqual([found?.cluster.clusterName, found?.kubelet], ["c1", { clusterDomain: "d" }]);
});

for (const { name, stored } of [
  { name: "neither is there", stored: {} },
  { name: "one of them is not there", stored: { [kubeletConfigName]: { kubelet: "{}" } } },
  { name: "the other is not there", stored: { [kubeadmConfigName]: { ClusterConfiguration: cluster } } },
  {
    name: "they must not be read",
    stored: { [kubeadmConfigName]: forbidden(configMaps, kubeadmConfigName, "no"), [kubeletConfigName]: { kubelet: "{}" } },
  },
] satisfies { name: string; stored: Stored }[])
  test(`there is no configuration where ${name}`, async () =>
    assert.equal(await storedConfiguration(clientOf(stored)), undefined));

for (const { stored, want } of [
  { stored: both({}, { kubelet: "{}" }), want: "ConfigMap kube-system/kubeadm-config has no ClusterConfiguration" },
  {
    stored: both({ ClusterConfiguration: " \n" }, { kubelet: "{}" }),
    want: "ConfigMap kube-system/kubeadm-config has no ClusterConfiguration",
  },
  {
    stored: both({ ClusterConfiguration: cluster }, { kubelet: "" }),
    want: `ConfigMap kube-system/${kubeletConfigName} has no kubelet`,
  },
  {
    stored: both({ ClusterConfiguration: cluster }, { kubelet: "[]" }),
    want: `ConfigMap kube-system/${kubeletConfigName}: kubelet is not a map`,
  },
  {
    stored: both({ ClusterConfiguration: cluster }, { kubelet: "text" }),
    want: `ConfigMap kube-system/${kubeletConfigName}: kubelet is not a map`,
  },
])
  test(`a stored configuration is refused: ${want}`, async () =>
    assert.rejects(storedConfiguration(clientOf(stored)), { message: want }));

test("another failure is told with what was read", async () => {
  const client = clientOf({ [kubeadmConfigName]: internalError("etcd is away") });
  await assert.rejects(readObject(client, "configmaps", kubeadmConfigName), {
    message: /^cannot read configmaps kube-system\/kubeadm-config of the cluster: .*etcd is away/,
  });
});

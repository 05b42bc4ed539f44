import assert from "node:assert/strict";
import { hostname, networkInterfaces } from "node:os";
import { test } from "node:test";
import { addressAt, parseCidr } from "./cidr.ts";
import { Failure } from "./failure.ts";
import { portFlag } from "./flag-names.ts";
import {
  type Choices,
  defaultChoices,
  mergeRequested,
  newSettings,
  portNames,
  portVariable,
  requestedByVariables,
  stateFolder,
  withRequested,
} from "./settings.ts";

for (const { name, env = {}, want } of [
  { name: "default", want: "/clone/.cox" },
  { name: "b", want: "/clone/.cox/clusters/b" },
  { name: "default", env: { COX_STATE: "other" }, want: "/clone/other" },
  { name: "b-1", env: { COX_STATE: "/elsewhere" }, want: "/elsewhere/clusters/b-1" },
  { name: "x".repeat(40), want: `/clone/.cox/clusters/${"x".repeat(40)}` },
])
  test(`the folder of ${name} with ${JSON.stringify(env)} is ${want}`, () =>
    assert.equal(stateFolder("/clone", name, env), want));

for (const name of ["", "x".repeat(41), "-a", "a-", "A", "a/b", "..", "a.b"])
  test(`${JSON.stringify(name)} cannot name a cluster`, () =>
    assert.throws(
      () => stateFolder("/clone", name, {}),
      (err) =>
        err instanceof Failure && err.exitCode === 2 && err.message.startsWith(`${JSON.stringify(name)} cannot name a cluster: `),
    ));

const choices: Choices = {
  ...defaultChoices(),
  nodeName: "n1",
  podCidr: "10.50.0.0/20",
  serviceCidr: "10.60.0.0/24",
  auditPolicy: "policy.yaml",
  etcdWithoutSync: true,
};
const settingsOf = (changes: Partial<Choices> = {}, user = 0, env: NodeJS.ProcessEnv = {}) =>
  newSettings("/clone", "b", "/clone/.cox/clusters/b", { ...choices, ...changes }, env, user);

test("the settings of a cluster follow from its folder and its choices", () => {
  const { id, ...settings } = settingsOf();
  assert.match(id, /^[0-9a-f]{6}$/);
  assert.deepEqual(settings, {
    root: "/clone",
    name: "b",
    state: "/clone/.cox/clusters/b",
    run: `/run/cox-${id}`,
    asRoot: true,
    withNode: true,
    fakeNodes: 0,
    nodeName: "n1",
    nodeAddress: "10.50.0.1",
    podCidr: "10.50.0.0/20",
    podGateway: "10.50.0.1",
    serviceCidr: "10.60.0.0/24",
    firstServiceAddress: "10.60.0.1",
    dnsAddress: "10.60.0.10",
    bridge: `cox${id}`,
    auditPolicy: "/clone/policy.yaml",
    etcdWithoutSync: true,
    ports: choices.ports,
    extraArgs: choices.extraArgs,
  });
  assert.notEqual(newSettings("/clone", "b", "/other/.cox", choices, {}, 0).id, id);
});

const outward = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.family === "IPv4" && !address.internal)?.address;
for (const { name, changes = {}, user = 0, env, want } of [
  { name: "without root", user: 7, want: { asRoot: false, withNode: false, run: /^\/tmp\/cox-/ } },
  {
    name: "without root, in the user's own folder",
    user: 7,
    env: { XDG_RUNTIME_DIR: "/run/user/7" },
    want: { asRoot: false, withNode: false, run: /^\/run\/user\/7\/cox-/ },
  },
  { name: "with --no-node", changes: { withNode: false }, want: { asRoot: true, withNode: false, run: /^\/run\/cox-/ } },
  { name: "with fake nodes", changes: { fakeNodes: 2 }, want: { asRoot: true, withNode: false, run: /^\/run\/cox-/ } },
])
  test(`there is no node ${name}, and the API server has an address of the machine`, () => {
    const { asRoot, withNode, run, nodeAddress, podGateway } = settingsOf(changes, user, env);
    assert.deepEqual({ asRoot, withNode }, { asRoot: want.asRoot, withNode: want.withNode });
    assert.match(run, want.run);
    assert.equal(nodeAddress, outward ?? "127.0.0.1");
    assert.equal(podGateway, "10.50.0.1");
  });

test("what the record of an earlier version lacks has its default", () => {
  const { fakeNodes: _, ...old } = choices;
  const { apiserver, etcd } = choices.ports;
  const record = { ...old, ports: { apiserver, etcd }, extraArgs: { etcd: ["--v=1"] }, auditPolicy: "" };
  const settings = newSettings("/clone", "b", "/s", record as never, {}, 0);
  assert.equal(settings.fakeNodes, 0);
  assert.deepEqual(settings.ports, defaultChoices().ports);
  assert.deepEqual(settings.extraArgs, { ...defaultChoices().extraArgs, etcd: ["--v=1"] });
  assert.equal(settings.auditPolicy, undefined);
});

for (const changes of [{ podCidr: "10.1.0.0" }, { serviceCidr: "::/112" }])
  test(`${JSON.stringify(changes)} of a damaged record is refused`, () =>
    assert.throws(
      () => settingsOf(changes),
      (err) => err instanceof Failure && / is not an IPv4 network$/.test(err.message),
    ));

test("requested settings count more than earlier ones, each port and each process's flags by itself", () => {
  const earlier = { nodeName: "a", podCidr: "p", ports: { etcd: 1, kubelet: 2 }, extraArgs: { etcd: ["--a"], kubelet: ["--b"] } };
  const later = { nodeName: "b", ports: { etcd: 3 }, extraArgs: { kubelet: [] } };
  const merged = { nodeName: "b", podCidr: "p", ports: { etcd: 3, kubelet: 2 }, extraArgs: { etcd: ["--a"], kubelet: [] } };
  assert.deepEqual(mergeRequested(earlier, later), merged);
  assert.deepEqual(withRequested(choices, merged), {
    ...choices,
    ...merged,
    ports: { ...choices.ports, ...merged.ports },
    extraArgs: { ...choices.extraArgs, ...merged.extraArgs },
  });
});

test("the defaults are Kubernetes' own ports, and networks of which a node and a cluster have enough", () => {
  assert.deepEqual(defaultChoices(), {
    nodeName: hostname().toLowerCase(),
    podCidr: "10.244.0.0/16",
    serviceCidr: "10.96.0.0/16",
    withNode: true,
    fakeNodes: 0,
    auditPolicy: "",
    etcdWithoutSync: false,
    ports: {
      ...{ apiserver: 6443, etcd: 2379, etcdPeer: 2380, controllerManager: 10257, scheduler: 10259 },
      ...{ kubelet: 10250, kubeletHealthz: 10248, services: 10261 },
    },
    extraArgs: {
      ...{ etcd: [], containerd: [], "kube-apiserver": [], "kube-controller-manager": [], "kube-scheduler": [] },
      ...{ kubelet: [], "coxswain-services": [] },
    },
  });
});

test("every setting has its variable, and every port its variable and flag", () => {
  const ports = Object.fromEntries(portNames.map((name, index) => [portVariable(name), String(index + 1)]));
  assert.deepEqual(
    requestedByVariables({
      ...ports,
      COX_PORT_ETCD: "",
      COX_NODE_NAME: "n",
      COX_POD_NETWORK: "10.1.0.0/20",
      COX_SERVICE_NETWORK: "10.2",
      COX_AUDIT_POLICY: "p",
      COX_ETCD_WITHOUT_SYNC: "",
    }),
    {
      nodeName: "n",
      podCidr: "10.1.0.0/20",
      serviceCidr: "10.2.0.0/16",
      auditPolicy: "p",
      ports: { apiserver: 1, etcdPeer: 3, controllerManager: 4, scheduler: 5, kubelet: 6, kubeletHealthz: 7, services: 8 },
    },
  );
  assert.deepEqual(requestedByVariables({ COX_PORT_ETCD: "" }), {});
  assert.ok(Number.isNaN(requestedByVariables({ COX_PORT_ETCD: "x" }).ports?.etcd), "it is refused later, by name");
  assert.deepEqual(portNames.map(portFlag).slice(2, 4), ["--etcd-peer-port", "--controller-manager-port"]);
});

test("addresses are counted from the network's first one", () => {
  assert.equal(addressAt(parseCidr("10.0.255.0/24")!, 256), "10.1.0.0");
});

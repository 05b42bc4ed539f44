import assert from "node:assert/strict";
import { test } from "node:test";
import { type Circumstances, choose, type Route } from "./choose.ts";
import { formatCidr, parseCidr } from "./cidr.ts";
import { Failure, UsageFailure } from "./failure.ts";
import type { RegisteredCluster } from "./registry.ts";
import { type Choices, defaultChoices, type RequestedChoices } from "./settings.ts";

const defaults: Choices = { ...defaultChoices(), nodeName: "node" };
const route = (cidr: string, device = "eth1"): Route => ({ cidr: parseCidr(cidr) as Route["cidr"], device });
const other = (choices: Partial<Choices> = {}): RegisteredCluster => ({
  ...defaults,
  ...choices,
  id: "aaaaaa",
  name: "default",
  root: "/elsewhere",
  state: "/elsewhere/.cox",
});

interface Situation extends Partial<Circumstances> {
  readonly taken?: readonly number[];
}

async function decide(requested: RequestedChoices, { taken = [], ...situation }: Situation = {}) {
  const said: string[] = [];
  const { choices } = await choose(
    { nodeName: situation.record?.choices.nodeName ?? "node", ...requested },
    {
      nameFlag: "",
      record: undefined,
      hasData: false,
      isRunning: false,
      others: [],
      routes: [],
      isPortFree: (port) => Promise.resolve(!taken.includes(port)),
      say: (text) => said.push(text),
      ...situation,
    },
  );
  return { choices, said };
}

const refuses = (requested: RequestedChoices, situation: Situation, message: RegExp, type = Failure): Promise<void> =>
  assert.rejects(decide(requested, situation), (err: Error) => err instanceof type && message.test(err.message));

test("a first cluster gets the documented ports and networks without a message", async () => {
  const { choices, said } = await decide({});
  assert.deepEqual(choices, defaults);
  assert.deepEqual(said, []);
});

test("a second cluster gets other ports and networks than a stopped first one", async () => {
  const { choices, said } = await decide({}, { others: [other()] });
  assert.equal(choices.podCidr, "10.245.0.0/16");
  assert.equal(choices.serviceCidr, "10.97.0.0/16");
  assert.deepEqual(choices.ports, {
    apiserver: 16443,
    etcd: 12379,
    etcdPeer: 12380,
    controllerManager: 20257,
    scheduler: 20259,
    kubelet: 20250,
    kubeletHealthz: 20248,
    services: 20261,
  });
  assert.match(said.join("\n"), /ports that are taken are replaced: --apiserver-port 16443 \(not 6443\)/);
  assert.match(
    said.join("\n"),
    /--pod-network-cidr is 10.245.0.0\/16, since .* the pod network 10.244.0.0\/16 of cluster default/,
  );
});

test("a third cluster has nothing in common with the other two", async () => {
  const second = (await decide({}, { others: [other()] })).choices;
  const third = (await decide({}, { others: [other(), other(second)] })).choices;
  const ports = [defaults, second, third].flatMap((choices) => Object.values(choices.ports));
  assert.equal(new Set(ports).size, ports.length);
  assert.equal(new Set([defaults, second, third].flatMap(({ podCidr, serviceCidr }) => [podCidr, serviceCidr])).size, 6);
});

test("a default port in use by another program is replaced, a requested one is refused", async () => {
  assert.equal((await decide({}, { taken: [6443, 16443] })).choices.ports.apiserver, 16453);
  await refuses({ ports: { apiserver: 6443 } }, { taken: [6443] }, /^port 6443 is taken by another program.*--apiserver-port$/);
});

test("a requested port is not assigned for another purpose", async () => {
  const { choices } = await decide({ ports: { apiserver: 2379 } });
  assert.equal(choices.ports.apiserver, 2379);
  assert.equal(choices.ports.etcd, 12379);
});

test("without a node the kubelet's ports are not checked", async () => {
  const requested = { withNode: false, ports: { kubelet: 10250 } };
  assert.equal((await decide(requested, { taken: [10250] })).choices.ports.kubelet, 10250);
});

test("fake nodes use the kubelet's port", async () => {
  const requested = { withNode: false, fakeNodes: 2 };
  assert.equal((await decide(requested, { taken: [10250] })).choices.ports.kubelet, 20250);
});

test("a node and fake nodes exclude each other in one call, but not across calls", async () => {
  await refuses({ withNode: true, fakeNodes: 2 }, {}, /^--node and --fake-nodes exclude each other$/, UsageFailure);
  const record = { requested: { withNode: true }, choices: defaults };
  assert.equal((await decide({ fakeNodes: 2 }, { record })).choices.fakeNodes, 2);
});

for (const { name, requested, situation, message } of [
  {
    name: "two clusters on one pod network",
    requested: { podCidr: "10.244.0.0/16" },
    situation: { others: [other()] },
    message:
      /^--pod-network-cidr: 10.244.0.0\/16 overlaps the pod network 10.244.0.0\/16 of cluster default in \/elsewhere; choose another/,
  },
  {
    name: "pods in a part of another cluster's services",
    requested: { podCidr: "10.96.4.0/22" },
    situation: { others: [other()] },
    message: /overlaps the service network 10.96.0.0\/16 of cluster default/,
  },
  {
    name: "two clusters on one service network",
    requested: { serviceCidr: "10.96.0.0/12" },
    situation: { others: [other()] },
    message: /^--service-cidr: 10.96.0.0\/12 overlaps the service network/,
  },
  {
    name: "services in the cluster's own pod network",
    requested: { podCidr: "10.50.0.0/16", serviceCidr: "10.50.128.0/20" },
    situation: {},
    message: /overlaps the cluster's own pod network/,
  },
  {
    name: "a pod network that the machine has a route to",
    requested: { podCidr: "10.9.0.0/16" },
    situation: { routes: [route("10.0.0.0/8", "tun0")] },
    message: /^--pod-network-cidr: 10.9.0.0\/16 overlaps this machine's route to 10.0.0.0\/8 \(tun0\)/,
  },
]) {
  test(`refuses ${name}`, () => refuses(requested, situation, message));
}

test("avoids a private range that a VPN routes", async () => {
  const { choices } = await decide({}, { routes: [route("10.0.0.0/8", "tun0")] });
  assert.deepEqual([choices.podCidr, choices.serviceCidr], ["172.24.0.0/16", "172.18.0.0/16"]);
});

for (const { name, requested, message } of [
  {
    name: "a network with bits behind its prefix",
    requested: { podCidr: "10.244.1.0/16" },
    message: /not an IPv4 network from \/8 to \/24/,
  },
  { name: "a network too small for a node's pods", requested: { podCidr: "10.244.1.0/25" }, message: /not an IPv4 network/ },
  {
    name: "a service network too large for the API server",
    requested: { serviceCidr: "10.0.0.0/8" },
    message: /from \/12 to \/28/,
  },
  { name: "an IPv6 network", requested: { podCidr: "fd00::/64" }, message: /not an IPv4 network/ },
  {
    name: "a port beyond the last",
    requested: { ports: { etcd: 65_536 } },
    message: /^--etcd-port: 65536 is not a port number from 1 to 65535$/,
  },
  {
    name: "a variable that is no number",
    requested: { ports: { etcdPeer: Number.NaN } },
    message: /^--etcd-peer-port: the value of COX_PORT_ETCDPEER is not a port number/,
  },
  {
    name: "one port for two",
    requested: { ports: { etcd: 7000, kubelet: 7000 } },
    message: /^--etcd-port and --kubelet-port are both 7000$/,
  },
  {
    name: "a node name with an underscore",
    requested: { nodeName: "my_node" },
    message: /^--node-name: "my_node" is not a valid node name/,
  },
]) {
  test(`${name} is refused as a command line`, () => refuses(requested, {}, message, UsageFailure));
}

const record = (requested: RequestedChoices = {}, choices: Partial<Choices> = {}) => ({
  requested,
  choices: { ...defaults, ...choices },
});

test("settings and choices of an earlier up are kept", async () => {
  const earlier = record(
    { withNode: false },
    { withNode: false, podCidr: "10.250.0.0/16", ports: { ...defaults.ports, etcd: 12379 } },
  );
  const { choices } = await decide({ extraArgs: { etcd: ["--heartbeat-interval=200"] } }, { record: earlier, hasData: true });
  assert.equal(choices.withNode, false);
  assert.equal(choices.podCidr, "10.250.0.0/16");
  assert.equal(choices.ports.etcd, 12379);
  assert.deepEqual(choices.extraArgs.etcd, ["--heartbeat-interval=200"]);
});

test("an automatically chosen port is replaced when another program uses it; one the user chose is not", async () => {
  const situation = { record: record({ ports: { etcd: 2379 } }), hasData: true };
  assert.equal((await decide({}, { ...situation, taken: [6443] })).choices.ports.apiserver, 16443);
  await refuses({}, { ...situation, taken: [2379] }, /port 2379 is taken/);
});

for (const { key, value, flag } of [
  { key: "nodeName", value: "another", flag: "--node-name" },
  { key: "podCidr", value: "10.50.0.0/16", flag: "--pod-network-cidr" },
  { key: "serviceCidr", value: "10.51.0.0/16", flag: "--service-cidr" },
] as const) {
  test(`${flag} cannot change while the cluster has data, and can without`, async () => {
    const situation = { record: record(), nameFlag: " --name b" };
    const message = new RegExp(`^${flag}: the cluster's data were created with .*, not ${value}; .*./cox down --purge --name b$`);
    await refuses({ [key]: value }, { ...situation, hasData: true }, message);
    assert.equal((await decide({ [key]: value }, { ...situation, hasData: false })).choices[key], value);
  });
}

test("a cluster with data does not start when another cluster uses its network", () =>
  refuses(
    {},
    { record: record(), hasData: true, others: [other()] },
    /data were created with --pod-network-cidr 10.244.0.0\/16, which overlaps/,
  ));

test("a cluster with data starts with a warning when a VPN's wider route covers its network; an equally narrow route is refused", async () => {
  const { said } = await decide({}, { record: record(), hasData: true, routes: [route("10.0.0.0/8", "tun0")] });
  assert.match(said[0] ?? "", /hides a part of this machine's route to 10.0.0.0\/8 \(tun0\)/);
  await refuses(
    {},
    { record: record(), hasData: true, routes: [route("10.244.0.0/16", "br0")] },
    /overlaps this machine's route/,
  );
});

test("a running cluster accepts its own settings and names changed ones", async () => {
  const situation = { record: record(), isRunning: true, hasData: true, taken: Object.values(defaults.ports) };
  assert.deepEqual((await decide({ ports: { etcd: 2379 } }, situation)).choices, defaults);
  await refuses(
    { ports: { etcd: 2389 }, withNode: false, extraArgs: { kubelet: ["--v=4"] } },
    situation,
    /^the cluster is running with another --no-node, --etcd-port, --kubelet-arg; stop it first: .\/cox down$/,
  );
});

test("networks are read and printed alike", () => {
  for (const text of ["0.0.0.0/0", "10.244.0.0/16", "192.168.1.128/25", "255.255.255.255/32"])
    assert.equal(formatCidr(parseCidr(text) as Route["cidr"]), text);
  for (const text of ["10.0.0.0", "10.0.0.0/33", "10.0.0.256/32", "010.0.0.0.0/8", "10.0.0.1/24", ""])
    assert.equal(parseCidr(text), undefined);
});

test("names, networks and ports are accepted up to their limits and refused behind them", async () => {
  for (const requested of [
    { nodeName: "n".repeat(63) },
    { podCidr: "10.0.0.0/8" },
    { podCidr: "10.50.0.0/24" },
    { serviceCidr: "10.96.0.0/12" },
    { serviceCidr: "10.50.0.0/28" },
    { ports: { etcd: 65_535, etcdPeer: 1 } },
    { withNode: true, fakeNodes: 0 },
  ])
    await decide(requested);
  for (const requested of [
    { nodeName: "n".repeat(64) },
    { podCidr: "10.0.0.0/7" },
    { podCidr: "10.50.0.0/25" },
    { serviceCidr: "10.0.0.0/11" },
    { serviceCidr: "10.50.0.0/29" },
    { ports: { etcd: 65_536 } },
    { ports: { etcd: 0 } },
    { withNode: true, fakeNodes: 1 },
  ])
    await refuses(requested, {}, /./, UsageFailure);
});

test("a replaced port goes up by tens to the last below the kernel's own, and none is given twice", async () => {
  const all = Array.from({ length: 2_000 }, (_, index) => 16_443 + 10 * index).filter((port) => port <= 32_767);
  const last = all.at(-1)!;
  const { choices } = await decide({}, { taken: [6443, ...all.slice(0, -1)] });
  assert.equal(choices.ports.apiserver, last);
  await refuses({}, { taken: [6443, ...all] }, /^no port is free; name one with --apiserver-port$/);
  // The free port for the controller manager is the one that the scheduler would get, too.
  const { ports } = (await decide({}, { taken: [10_257, 10_259], record: undefined })).choices;
  assert.equal(new Set(Object.values(ports)).size, Object.values(ports).length);
});

test("networks are tried in the order of preference, and a decision without any says which flag names one", async () => {
  const routes: Route[] = [];
  const tried: Record<"podCidr" | "serviceCidr", string[]> = { podCidr: [], serviceCidr: [] };
  const said: string[] = [];
  const ports = { isPortFree: async () => true };
  for (let at = 0; at < 96; at++) {
    const requested = tried.serviceCidr.length < 70 ? {} : { serviceCidr: "192.168.0.0/20" };
    const decided = await decide(requested, { routes, ...ports });
    said.push(...decided.said);
    for (const key of ["podCidr", "serviceCidr"] as const) {
      if (requested.serviceCidr !== undefined && key === "serviceCidr") continue;
      tried[key].push(decided.choices[key]);
      routes.push(route(decided.choices[key]));
    }
  }
  const nets = (first: number, from: number, to: number): string[] =>
    Array.from({ length: to - from + 1 }, (_, index) => `${first}.${from + index}.0.0/16`);
  assert.deepEqual(tried.podCidr, [...nets(10, 244, 255), ...nets(10, 200, 243), ...nets(172, 24, 31), ...nets(100, 64, 95)]);
  assert.deepEqual(tried.serviceCidr, [...nets(10, 96, 127), ...nets(172, 18, 23), ...nets(100, 96, 127)]);
  assert.deepEqual(said.slice(0, 2), [
    "--pod-network-cidr is 10.245.0.0/16, since 10.244.0.0/16 overlaps this machine's route to 10.244.0.0/16 (eth1)",
    "--service-cidr is 10.97.0.0/16, since 10.96.0.0/16 overlaps this machine's route to 10.96.0.0/16 (eth1)",
  ]);
  await refuses({}, { routes, ...ports }, /^no network is free; name one with --pod-network-cidr$/);
  await refuses({ podCidr: "192.168.0.0/16" }, { routes, ...ports }, /^no network is free; name one with --service-cidr$/);
});

test("every other cluster and every route counts, and each obstacle is named with its owner", async () => {
  const second = other({ podCidr: "10.50.0.0/16", serviceCidr: "10.51.0.0/16", ports: { ...defaults.ports, scheduler: 7000 } });
  const others = [other(), { ...second, name: "b", root: "/b" }];
  const routes = [route("10.60.0.0/16", "eth1"), route("10.61.0.0/16", "eth2")];
  const again = "choose another, or leave the flag out for a free one";
  for (const [requested, message] of [
    [
      { podCidr: "10.50.0.0/16" },
      `--pod-network-cidr: 10.50.0.0/16 overlaps the pod network 10.50.0.0/16 of cluster b in /b; ${again}`,
    ],
    [
      { podCidr: "10.51.1.0/24" },
      `--pod-network-cidr: 10.51.1.0/24 overlaps the service network 10.51.0.0/16 of cluster b in /b; ${again}`,
    ],
    [
      { serviceCidr: "10.61.0.0/16" },
      `--service-cidr: 10.61.0.0/16 overlaps this machine's route to 10.61.0.0/16 (eth2); ${again}`,
    ],
  ] as const)
    await assert.rejects(decide(requested, { others, routes }), { message });
  const taken = [7000, 7001];
  await assert.rejects(decide({ ports: { scheduler: 7000 } }, { others, taken }), {
    message: "port 7000 is taken by cluster b in /b; end it, or give another --scheduler-port",
  });
  await assert.rejects(decide({ ports: { scheduler: 7001 } }, { others, taken }), {
    message: "port 7001 is taken by another program; end it, or give another --scheduler-port",
  });
  // A port that the user gives may be that of a cluster which is stopped.
  assert.equal((await decide({ ports: { scheduler: 7000 } }, { others })).choices.ports.scheduler, 7000);
});

test("data whose network another cluster or a narrow route has do not start, and a hidden route is said", async () => {
  const situation = { record: record(), hasData: true, nameFlag: " --name b" };
  const freed = "free it, or delete the cluster: ./cox down --purge --name b";
  await assert.rejects(decide({}, { ...situation, others: [other({ podCidr: "10.0.0.0/16" })] }), {
    message: `the cluster's data were created with --service-cidr 10.96.0.0/16, which overlaps the service network 10.96.0.0/16 of cluster default in /elsewhere; ${freed}`,
  });
  const narrow = [route("10.0.0.0/8", "tun0"), route("10.244.3.0/24", "br0")];
  await assert.rejects(decide({}, { ...situation, routes: narrow }), {
    message: `the cluster's data were created with --pod-network-cidr 10.244.0.0/16, which overlaps this machine's route to 10.0.0.0/8 (tun0); ${freed}`,
  });
  const hidden = "hides a part of this machine's route to 10.0.0.0/8 (tun0)";
  assert.deepEqual((await decide({}, { ...situation, routes: narrow.slice(0, 1) })).said, [
    `--pod-network-cidr 10.244.0.0/16 ${hidden}`,
    `--service-cidr 10.96.0.0/16 ${hidden}`,
  ]);
});

test("what earlier calls requested is kept with what this one does, also while the cluster runs", async () => {
  const earlier = record({ nodeName: "node", ports: { etcd: 2379 }, extraArgs: { etcd: ["--a=1"] } });
  const circumstances = {
    nameFlag: "",
    record: earlier,
    hasData: true,
    others: [],
    routes: [],
    isPortFree: async () => true,
    say: () => {},
  };
  const requested = { ports: { kubelet: 10_250 } };
  const wanted = { nodeName: "node", ports: { etcd: 2379, kubelet: 10_250 }, extraArgs: { etcd: ["--a=1"] } };
  for (const isRunning of [true, false])
    assert.deepEqual((await choose(requested, { ...circumstances, isRunning })).requested, wanted, String(isRunning));
  const said: string[] = [];
  const taken = { ...circumstances, isRunning: false, record: undefined, say: (text: string) => said.push(text) };
  await choose({ nodeName: "node" }, { ...taken, isPortFree: async (port) => ![2379, 2380, 12_380].includes(port) });
  assert.deepEqual(said, ["ports that are taken are replaced: --etcd-port 12379 (not 2379), --etcd-peer-port 12390 (not 2380)"]);
});

test("without a node only the kubelet's ports and that of coxswain-services may be taken", async () => {
  const free = { kubelet: 10_250, kubeletHealthz: 10_248, services: 10_261 };
  const ports = { ...defaults.ports, ...free };
  const taken = Object.values(free);
  assert.deepEqual((await decide({ withNode: false, ports: free }, { taken })).choices.ports, ports);
  // An automatic choice is free in any case, for a later up with a node.
  const fake = await decide({ withNode: false, fakeNodes: 1, ports: { kubeletHealthz: 10_248, services: 10_261 } }, { taken });
  assert.deepEqual(fake.choices.ports, { ...ports, kubelet: 20_250 });
  const behind = await decide({ withNode: false, ports: { kubelet: 10_250 } }, { taken: [10_250, 10_261] });
  assert.deepEqual(behind.choices.ports, { ...ports, services: 20_261 });
  for (const name of ["kubeletHealthz", "services"] as const)
    await refuses({ withNode: true, ports: { [name]: free[name] } }, { taken }, new RegExp(`^port ${free[name]} is taken by`));
});

test("a port that replaces one is not given to the next that is taken, too", async () => {
  const below = Array.from({ length: 788 }, (_, index) => 12_379 + 10 * index);
  const { choices } = await decide({}, { taken: [2379, 10_259, ...below] });
  assert.deepEqual([choices.ports.etcd, choices.ports.scheduler], [20_259, 20_269]);
  const earlier = record({}, { ports: { ...defaults.ports, apiserver: 20_257 } });
  const { ports } = (await decide({}, { record: earlier, hasData: true, taken: [10_257] })).choices;
  assert.deepEqual([ports.apiserver, ports.controllerManager], [20_257, 20_267], "nor is one that is kept");
});

test("the last port before the kernel's own can be chosen, and none behind it", async () => {
  const all = Array.from({ length: 1_252 }, (_, index) => 20_257 + 10 * index);
  assert.equal(all.at(-1), 32_767);
  const { choices } = await decide({}, { taken: [10_257, ...all.slice(0, -1)] });
  assert.equal(choices.ports.controllerManager, 32_767);
  await refuses({}, { taken: [10_257, ...all] }, /^no port is free; name one with --controller-manager-port$/);
});

test("a running cluster accepts flags of its daemons that are equal, in their order", async () => {
  const extraArgs = { ...defaults.extraArgs, kubelet: ["--v=4", "--max-pods=5"] };
  const situation = { record: record({}, { extraArgs }), isRunning: true, hasData: true };
  assert.deepEqual((await decide({ extraArgs: { kubelet: ["--v=4", "--max-pods=5"] } }, situation)).choices.extraArgs, extraArgs);
  await refuses({ extraArgs: { kubelet: ["--max-pods=5", "--v=4"] } }, situation, /another --kubelet-arg; stop it first/);
});

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { PodSpec, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { noObjects } from "../sources/api-objects.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { type DnsConfig, parseResolvConf, podDns } from "./dns.ts";
import { fieldValue, resourceValue } from "./downward-api-env.ts";
import { environmentOf } from "./env-vars.ts";
import { expand } from "./expansion.ts";
import { readHostDns } from "./host-dns.ts";
import { hostnameAndDomain, hostsFile, nodenameOf, writeHostsFile } from "./hostname.ts";
import { serviceEnvironment } from "./service-links.ts";

for (const { text, want } of [
  { text: "$(A)", want: "one" },
  { text: "x$(A)y$(B)z", want: "xoneytwoz" },
  { text: "$$(A)", want: "$(A)" },
  { text: "$$$(A)", want: "$one" },
  { text: "$(UNKNOWN)", want: "$(UNKNOWN)" },
  { text: "$A", want: "$A" },
  { text: "$(A", want: "$(A" },
  { text: "$", want: "$" },
  { text: "$()", want: "$()" },
  { text: "a$$", want: "a$" },
  { text: "$(A)$(A)", want: "oneone" },
]) {
  test(`${text} expands to ${want}`, () =>
    assert.equal(
      expand(text, (name) => ({ A: "one", B: "two" })[name]),
      want,
    ));
}

const context = {
  nodeName: "n1",
  hostIps: ["192.0.2.1"],
  podIps: ["10.0.0.1", "fd00::1"],
  allocatable: { cpu: "4", memory: "8Gi" },
};

test("fields of a pod", () => {
  const pod = aNodePod({ nodeName: "n1", serviceAccountName: "sa" }, { labels: { "a/b": "1" }, annotations: { c: "x\ny" } });
  const want: Record<string, string> = {
    "metadata.name": "web",
    "metadata.namespace": "default",
    "metadata.uid": "uid-1",
    "metadata.labels['a/b']": "1",
    "metadata.labels['none']": "",
    "metadata.labels": 'a/b="1"',
    "metadata.annotations": 'c="x\\ny"',
    "spec.nodeName": "n1",
    "spec.serviceAccountName": "sa",
    "status.hostIP": "192.0.2.1",
    "status.podIP": "10.0.0.1",
    "status.podIPs": "10.0.0.1,fd00::1",
  };
  for (const [path, value] of Object.entries(want)) assert.equal(fieldValue(pod, path, context), value, path);
  assert.throws(() => fieldValue(pod, "spec.containers", context), /unsupported fieldPath: spec.containers/);
  assert.equal(fieldValue(pod, "metadata.labels['constructor']", context), "");
  const bare = aNodePod();
  const of = (path: string): string => fieldValue(bare, path, context);
  assert.deepEqual(
    ["metadata.labels", "metadata.annotations", "metadata.annotations['a']", "spec.nodeName", "spec.serviceAccountName"].map(of),
    ["", "", "", "n1", ""],
    "what the pod does not have is empty, its node this one",
  );
});

test("all labels are listed in the order of their keys", () => {
  assert.equal(fieldValue(aNodePod({}, { labels: { b: "2", a: "1" } }), "metadata.labels", context), 'a="1"\nb="2"');
});

test("a resource may be that of another container, also of an init container, and only limits default to the node's", () => {
  const of = (cpu: string) => ({ resources: { limits: { cpu }, requests: { cpu } } });
  const pod = aNodePod({
    initContainers: [aContainer({ name: "init", ...of("1") })],
    containers: [aContainer(of("2")), aContainer({ name: "b" })],
  });
  const value = (ref: { resource: string; containerName?: string }) => resourceValue(pod, ref, "main", context);
  assert.equal(value({ resource: "requests.cpu" }), "2");
  assert.equal(value({ resource: "requests.cpu", containerName: "init" }), "1");
  assert.equal(value({ resource: "requests.cpu", containerName: "b" }), "0");
  assert.equal(value({ resource: "limits.cpu", containerName: "b" }), "4");
  assert.throws(() => value({ resource: "limits.cpu", containerName: "none" }), { message: "container none not found" });
  const twins = aNodePod({ initContainers: [aContainer(of("1"))], containers: [aContainer(of("2"))] });
  assert.equal(resourceValue(twins, { resource: "requests.cpu" }, "main", context), "2", "of one name the container counts");
  for (const resource of ["limits.pods", "limits.example.com/gpu", "usage.cpu", "cpu", "requests.hugepages"])
    assert.throws(() => value({ resource }), { message: `unsupported container resource : ${resource}` });
});

test("values of labels and annotations are quoted as Go quotes them", () => {
  const value = 'a"b\\c\td\u0001é \u0007\b\f\n\r\v\u001f\u007f\u00a0\u200b';
  const pod = aNodePod({}, { annotations: { z: "last", a: value } });
  assert.equal(
    fieldValue(pod, "metadata.annotations", context),
    'a="a\\"b\\\\c\\td\\x01é \\a\\b\\f\\n\\r\\v\\x1f\\x7f\\u00a0\\u200b"\nz="last"',
  );
});

for (const { resource, divisor, want } of [
  { resource: "limits.cpu", divisor: undefined, want: "1" },
  { resource: "limits.cpu", divisor: "1m", want: "500" },
  { resource: "requests.memory", divisor: "1Mi", want: "32" },
  { resource: "limits.memory", divisor: undefined, want: "8589934592" },
  { resource: "requests.cpu", divisor: "0", want: "0" },
  { resource: "limits.ephemeral-storage", divisor: "1Gi", want: "2" },
  { resource: "requests.ephemeral-storage", divisor: undefined, want: "0" },
  { resource: "requests.hugepages-2Mi", divisor: "2Mi", want: "3" },
]) {
  test(`${resource} by ${divisor ?? "1"} is ${want}`, () => {
    const limits = { cpu: "500m", "ephemeral-storage": "1025Mi" };
    const requests = { memory: "32Mi", "hugepages-2Mi": "6Mi" };
    const pod = aNodePod({ containers: [aContainer({ resources: { limits, requests } })] });
    assert.equal(resourceValue(pod, { resource, ...(divisor === undefined ? {} : { divisor }) }, "main", context), want);
  });
}

const service = (name: string, namespace: string, clusterIP: string, ports: unknown[]): Service =>
  ({ metadata: { name, namespace }, spec: { clusterIP, ports } }) as unknown as Service;

test("a divisor rounds up, and a field of another node's pod is the pod's", () => {
  const limits = { cpu: "1001m", memory: "1025Ki" };
  const pod = aNodePod(
    { nodeName: "own", containers: [aContainer({ resources: { limits } })] },
    { annotations: { a: "1" }, labels: { a: "2" } },
  );
  const value = (resource: string, divisor: string) => resourceValue(pod, { resource, divisor }, "main", context);
  assert.deepEqual([value("limits.cpu", "1"), value("limits.memory", "1Mi")], ["2", "2"]);
  assert.deepEqual(
    [fieldValue(pod, "spec.nodeName", context), fieldValue(pod, "metadata.annotations['a']", context)],
    ["own", "1"],
  );
});

test("variables of services are in the order of the services' names; the namespace's own service kubernetes is used before the API server's", () => {
  const port = [{ name: "web", port: 80 }];
  const services = [
    service("kubernetes", "default", "10.96.0.1", [{ port: 443 }]),
    service("kubernetes", "web", "10.96.0.9", [{ port: 1 }]),
    service("b", "web", "fd00::7", port),
    service("a", "web", "10.96.0.2", port),
  ];
  for (const list of [services, services.toReversed()]) {
    const all = atOnce(serviceEnvironment(list, "web", true));
    const hosts = [...all].filter(([name]) => name.endsWith("_SERVICE_HOST"));
    assert.deepEqual(hosts, [
      ["A_SERVICE_HOST", "10.96.0.2"],
      ["B_SERVICE_HOST", "fd00::7"],
      ["KUBERNETES_SERVICE_HOST", "10.96.0.9"],
    ]);
    assert.equal(all.get("B_PORT_80_TCP"), "tcp://[fd00::7]:80");
    assert.deepEqual([all.get("B_PORT_80_TCP_ADDR"), all.get("A_SERVICE_PORT_WEB")], ["fd00::7", "80"]);
  }
});

test("variables name the services of the namespace, and always the API server", () => {
  const services = [
    service("kubernetes", "default", "10.96.0.1", [{ name: "https", port: 443, protocol: "TCP" }]),
    service("my-db", "web", "10.96.0.7", [
      { name: "", port: 5432 },
      { name: "metrics", port: 9100, protocol: "UDP" },
    ]),
    service("headless", "web", "None", [{ port: 1 }]),
    { metadata: { name: "unassigned", namespace: "web" }, spec: { ports: [{ port: 1 }] } } as unknown as Service,
    service("other", "elsewhere", "10.96.0.8", [{ port: 1 }]),
    service("portless", "web", "10.96.0.9", []),
    { metadata: { name: "also-portless", namespace: "web" }, spec: { clusterIP: "10.96.0.10" } },
  ];
  const all = atOnce(serviceEnvironment(services, "web", true));
  assert.deepEqual(Object.fromEntries([...all].filter(([name]) => name.startsWith("MY_DB"))), {
    MY_DB_SERVICE_HOST: "10.96.0.7",
    MY_DB_SERVICE_PORT: "5432",
    MY_DB_SERVICE_PORT_METRICS: "9100",
    MY_DB_PORT: "tcp://10.96.0.7:5432",
    MY_DB_PORT_5432_TCP: "tcp://10.96.0.7:5432",
    MY_DB_PORT_5432_TCP_PROTO: "tcp",
    MY_DB_PORT_5432_TCP_PORT: "5432",
    MY_DB_PORT_5432_TCP_ADDR: "10.96.0.7",
    MY_DB_PORT_9100_UDP: "udp://10.96.0.7:9100",
    MY_DB_PORT_9100_UDP_PROTO: "udp",
    MY_DB_PORT_9100_UDP_PORT: "9100",
    MY_DB_PORT_9100_UDP_ADDR: "10.96.0.7",
  });
  assert.equal(all.get("KUBERNETES_SERVICE_HOST"), "10.96.0.1");
  const hosts = [...all.keys()].filter((name) => name.endsWith("_SERVICE_HOST"));
  assert.deepEqual(hosts, ["KUBERNETES_SERVICE_HOST", "MY_DB_SERVICE_HOST"]);
  const without = atOnce(serviceEnvironment(services, "web", false));
  assert.deepEqual([without.has("MY_DB_SERVICE_HOST"), without.has("KUBERNETES_SERVICE_HOST")], [false, true]);
});

const objects = {
  ...noObjects,
  configMap: async (namespace: string, name: string) =>
    name === "cm"
      ? { metadata: {}, data: { key: "value", "not a name": "x", __proto__x: "p" } }
      : noObjects.configMap(namespace, name),
  secret: async () => ({ metadata: {}, data: { pw: Buffer.from("s3cret").toString("base64") } }),
};
const environment = (container: Partial<PodSpec["containers"][number]>, invalid: string[] = []): Promise<Map<string, string>> =>
  environmentOf(aNodePod({ containers: [aContainer(container)] }), aContainer(container), {
    ...context,
    objects,
    services: [],
    onInvalidNames: (_, __, keys) => void invalid.push(...keys),
  });

test("variables come from values, references and whole objects", async () => {
  const invalid: string[] = [];
  const got = await environment(
    {
      envFrom: [
        { prefix: "P_", configMapRef: { name: "cm" } },
        { secretRef: { name: "s" } },
        { configMapRef: { name: "none", optional: true } },
        { prefix: "OF_NOTHING_" },
      ],
      resources: { limits: { cpu: "1500m" } },
      env: [
        { name: "A", value: "a" },
        { name: "CPUS", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
        { name: "BYTES", valueFrom: { resourceFieldRef: { containerName: "main", resource: "limits.memory", divisor: "1Gi" } } },
        { name: "B", value: "$(A)-$(pw)-$(LATER)" },
        { name: "LATER", value: "l" },
        { name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        { name: "PW", valueFrom: { secretKeyRef: { name: "s", key: "pw" } } },
        { name: "NONE", valueFrom: { configMapKeyRef: { name: "cm", key: "none", optional: true } } },
        { name: "GONE", valueFrom: { configMapKeyRef: { name: "none", key: "key", optional: true } } },
        { name: "UID", value: "", valueFrom: { fieldRef: { fieldPath: "metadata.uid" } } },
        { name: "EMPTY" },
      ],
    },
    invalid,
  );
  assert.deepEqual(Object.fromEntries(got), {
    P_key: "value",
    P___proto__x: "p",
    pw: "s3cret",
    A: "a",
    CPUS: "2",
    BYTES: "8",
    B: "a-s3cret-$(LATER)",
    LATER: "l",
    NAME: "web",
    PW: "s3cret",
    UID: "uid-1",
    EMPTY: "",
  });
  assert.deepEqual(invalid, ["P_not a name"]);
});

test("a later whole object overrides an earlier one, and prefixes apply to secrets, too", async () => {
  const got = await environmentOf(
    aNodePod(),
    aContainer({
      envFrom: [
        { configMapRef: { name: "cm" } },
        { prefix: "S_", secretRef: { name: "s" } },
        { configMapRef: { name: "later" } },
      ],
    }),
    {
      ...context,
      objects: {
        ...objects,
        configMap: async (_: string, name: string) => ({ metadata: {}, data: { key: name } }),
      },
      services: [],
      onInvalidNames: () => undefined,
    },
  );
  assert.deepEqual(Object.fromEntries(got), { key: "later", S_pw: "s3cret" });
});

test("service links can be used by variables, do not override them, and are left out when the pod does not want them", async () => {
  const services = [service("my-db", "default", "10.96.0.7", [{ port: 5432 }])];
  const of = (spec: Partial<PodSpec>) =>
    environmentOf(
      aNodePod(spec),
      aContainer({
        env: [
          { name: "URL", value: "db://$(MY_DB_SERVICE_HOST)" },
          { name: "MY_DB_SERVICE_PORT", value: "1" },
          { name: "PORT", value: "$(MY_DB_SERVICE_PORT)" },
        ],
      }),
      { ...context, objects, services, onInvalidNames: () => undefined },
    );
  const linked = await of({});
  assert.deepEqual(
    ["URL", "MY_DB_SERVICE_HOST", "MY_DB_SERVICE_PORT", "PORT"].map((name) => linked.get(name)),
    ["db://10.96.0.7", "10.96.0.7", "1", "1"],
  );
  assert.deepEqual(Object.fromEntries(await of({ enableServiceLinks: false })), {
    URL: "db://$(MY_DB_SERVICE_HOST)",
    MY_DB_SERVICE_PORT: "1",
    PORT: "1",
  });
});

test("names of a whole object that are not names of variables are reported in order, also those that begin with two dots", async () => {
  const reported: unknown[] = [];
  const data = { "z z": "1", ".": "2", "..a": "3", ".ok": "4", "a b": "5" };
  const got = await environmentOf(aNodePod(), aContainer({ envFrom: [{ configMapRef: { name: "cm" } }] }), {
    ...context,
    objects: { ...noObjects, configMap: async () => ({ metadata: {}, data }) },
    services: [],
    onInvalidNames: (...given) => void reported.push(given),
  });
  assert.deepEqual(Object.fromEntries(got), { ".ok": "4" });
  assert.deepEqual(reported, [["ConfigMap", "default/cm", [".", "..a", "a b", "z z"]]]);
});

test("an optional reference may be absent, but a failure to read it is one", async () => {
  const unreadable = { ...noObjects, configMap: () => Promise.reject(new Error("connect ECONNREFUSED")) };
  const of = (container: Partial<PodSpec["containers"][number]>) =>
    environmentOf(aNodePod(), aContainer(container), {
      ...context,
      objects: unreadable,
      services: [],
      onInvalidNames: () => undefined,
    });
  await assert.rejects(of({ envFrom: [{ configMapRef: { name: "cm", optional: true } }] }), /ECONNREFUSED/);
  const env = [{ name: "X", valueFrom: { configMapKeyRef: { name: "cm", key: "k", optional: true } } }];
  await assert.rejects(of({ env }), /ECONNREFUSED/);
});

test("missing references that are not optional are reported", async () => {
  await assert.rejects(
    environment({ env: [{ name: "X", valueFrom: { configMapKeyRef: { name: "none", key: "k" } } }] }),
    /configmap "none" not found/,
  );
  await assert.rejects(
    environment({ env: [{ name: "X", valueFrom: { configMapKeyRef: { name: "cm", key: "none" } } }] }),
    /couldn't find key none in ConfigMap default\/cm/,
  );
  const key = { name: "none", key: "k" };
  await assert.rejects(
    environment({
      env: [
        { name: "X", valueFrom: { configMapKeyRef: { ...key, optional: true } } },
        { name: "Y", valueFrom: { configMapKeyRef: key } },
      ],
    }),
    /configmap "none" not found/,
    "one of two references to it is not optional",
  );
});

const host: DnsConfig = { servers: ["192.0.2.53"], searches: ["corp.example"], options: ["edns0"] };
const settings = { clusterDns: ["10.96.0.10"], clusterDomain: "cluster.local", host, hostIps: ["192.0.2.1"] };
for (const { name, spec, want } of [
  {
    name: "ClusterFirst",
    spec: {},
    want: {
      servers: ["10.96.0.10"],
      searches: ["default.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"],
      options: ["ndots:5"],
    },
  },
  { name: "Default", spec: { dnsPolicy: "Default" }, want: host },
  { name: "ClusterFirst in the host's network", spec: { hostNetwork: true }, want: host },
  {
    name: "None with its own",
    spec: {
      dnsPolicy: "None",
      dnsConfig: {
        nameservers: ["1.1.1.1"],
        searches: ["x"],
        options: [{ name: "ndots", value: "2" }, { name: "single" }, { name: "empty", value: "" }],
      },
    },
    want: { servers: ["1.1.1.1"], searches: ["x"], options: ["ndots:2", "single", "empty"] },
  },
  {
    name: "its own servers and search domains after the cluster's, each once",
    spec: { dnsConfig: { nameservers: ["1.1.1.1", "10.96.0.10"], searches: ["x", "cluster.local"] } },
    want: {
      servers: ["10.96.0.10", "1.1.1.1"],
      searches: ["default.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example", "x"],
      options: ["ndots:5"],
    },
  },
  {
    name: "its own options over the cluster's",
    spec: { dnsConfig: { options: [{ name: "ndots", value: "1" }] } },
    want: {
      servers: ["10.96.0.10"],
      searches: ["default.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"],
      options: ["ndots:1"],
    },
  },
] as { name: string; spec: Partial<PodSpec>; want: DnsConfig }[]) {
  test(`resolver of a pod: ${name}`, () => assert.deepEqual(podDns(aNodePod(spec), settings), want));
}

test("a search line of exactly 256 characters is kept, and an option without a value replaces one with it", () => {
  const searches = ["a".repeat(127), "b".repeat(128)];
  const dnsConfig = { nameservers: ["1"], searches, options: [{ name: "ndots" }] };
  assert.deepEqual(podDns(aNodePod({ dnsPolicy: "None", dnsConfig }), settings, () => assert.fail()).searches, searches);
  assert.deepEqual(podDns(aNodePod({ dnsConfig: { options: [{ name: "ndots" }] } }), settings).options, ["ndots"]);
});

test("a pod that uses the node's resolver, which names no server, asks the node itself", () => {
  const none = { servers: [], searches: ["corp.example"], options: [] };
  const of = (hostIps: string[], clusterDns = ["10.96.0.10"]) =>
    podDns(aNodePod({ dnsPolicy: "Default" }), { ...settings, clusterDns, host: none, hostIps });
  assert.deepEqual(of(["192.0.2.1", "fd00::1"]), { servers: ["192.0.2.1", "fd00::1"], searches: ["."], options: [] });
  assert.deepEqual(of([]).servers, ["127.0.0.1"]);
  assert.deepEqual(of([], []), none, "without a cluster resolver the node's is passed as it is");
});

test("without a cluster domain a pod has the node's search domains only", () => {
  assert.deepEqual(podDns(aNodePod(), { ...settings, clusterDomain: "" }).searches, ["corp.example"]);
});

test("search domains that are longer than 256 characters together are dropped from the end and reported", () => {
  const reported: string[] = [];
  const searches = ["a", "b", "c"].map((letter) => letter.repeat(100));
  const spec = { dnsPolicy: "None", dnsConfig: { nameservers: ["1"], searches } };
  const got = podDns(aNodePod(spec), settings, (_, message) => reported.push(message));
  assert.deepEqual(got.searches, searches.slice(0, 2));
  assert.match(reported.join(), /^Search Line limits were exceeded, .* the applied search line is: a+ b+$/);
});

test("with ClusterFirstWithHostNet a pod of the host's network uses the cluster's resolver", () => {
  assert.deepEqual(podDns(aNodePod({ hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" }), settings).servers, [
    "10.96.0.10",
  ]);
});

for (const dnsPolicy of [undefined, "ClusterFirstWithHostNet"]) {
  test(`without a cluster resolver a pod with dnsPolicy ${dnsPolicy ?? "ClusterFirst"} gets the node's, and an event reports it`, () => {
    const reported: string[] = [];
    const pod = aNodePod(dnsPolicy === undefined ? {} : { dnsPolicy });
    assert.deepEqual(
      podDns(pod, { ...settings, clusterDns: [] }, (...problem) => reported.push(problem.join(" "))),
      host,
    );
    const policy = dnsPolicy ?? "ClusterFirst";
    assert.deepEqual(reported, [
      `MissingClusterDNS pod: "web_default(uid-1)". kubelet does not have ClusterDNS IP configured and cannot create Pod using "${policy}" policy. Falling back to "Default" policy.`,
    ]);
  });
}

test("name servers and search domains beyond the limit are dropped and reported", () => {
  const reported: string[] = [];
  const spec = {
    dnsPolicy: "None",
    dnsConfig: { nameservers: ["1", "2", "3", "4"], searches: ["a", "b", "c", "d", "e", "f", "g"] },
  };
  const got = podDns(aNodePod(spec), settings, (reason) => reported.push(reason));
  assert.deepEqual([got.servers.length, got.searches.length], [3, 6]);
  assert.deepEqual(reported, ["DNSConfigForming", "DNSConfigForming"]);
});

test("reads a resolv.conf", () => {
  assert.deepEqual(
    parseResolvConf(
      "# c\nnameserver 10.0.0.1\nsearch old\nsearch a.example. b . ; c\noptions ndots:3 rotate\n; x\noptions edns0\nnameserver 10.0.0.2 # y\n",
    ),
    {
      servers: ["10.0.0.1", "10.0.0.2"],
      searches: ["a.example", "b", "."],
      options: ["ndots:3", "rotate", "edns0"],
    },
  );
});

test("host names: from spec.hostname, with a subdomain, truncated, and as FQDN", () => {
  assert.deepEqual(hostnameAndDomain(aNodePod(), "cluster.local"), { hostname: "web", domain: "" });
  const pod = aNodePod({ hostname: "h", subdomain: "sub", setHostnameAsFQDN: true });
  const { hostname, domain } = hostnameAndDomain(pod, "cluster.local");
  assert.deepEqual([hostname, domain], ["h", "sub.default.svc.cluster.local"]);
  assert.equal(nodenameOf(pod, hostname, domain), "h.sub.default.svc.cluster.local");
  assert.equal(nodenameOf(aNodePod({ setHostnameAsFQDN: true }), "h", ""), "h", "it has no domain");
  assert.equal(nodenameOf(pod, "h".repeat(64 - domain.length - 1), domain).length, 64);
  assert.equal(
    nodenameOf(aNodePod({ subdomain: "sub" }), hostname, domain),
    "h",
    "the domain is not part of it unless asked for",
  );
  assert.equal(hostnameAndDomain(aNodePod({}, { name: `${"a".repeat(61)}.-b` }), "x").hostname, "a".repeat(61));
  assert.throws(() => nodenameOf(pod, "h".repeat(60), domain), /is too long \(64 characters is the max/);
  assert.equal(hostnameAndDomain(aNodePod({}, { name: `${"a".repeat(62)}-b` }), "x").hostname, "a".repeat(62));
  const text = hostsFile(aNodePod({ hostAliases: [{ ip: "1.2.3.4", hostnames: ["x", "y"] }] }), ["10.0.0.1"], "h", "d");
  assert.match(text, /^# Kubernetes-managed hosts file\.\n127\.0\.0\.1\tlocalhost\n/);
  assert.match(text, /\n10\.0\.0\.1\th\.d\th\n\n# Entries added by HostAliases\.\n1\.2\.3\.4\tx\ty\n$/);
});

test("a pod's hosts file names each of its addresses; in the host's network it has the host's entries and the pod's aliases", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-hosts-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "pod/etc-hosts");
  const hostAliases = [{ ip: "1.2.3.4", hostnames: ["x"] }];
  await writeHostsFile(path, aNodePod({ hostAliases }), ["10.0.0.1", "fd00::1"], "k");
  assert.match(
    await readFile(path, "utf8"),
    /\n10\.0\.0\.1\tweb\nfd00::1\tweb\n\n# Entries added by HostAliases\.\n1\.2\.3\.4\tx\n$/,
  );
  await writeHostsFile(path, aNodePod({ hostAliases, hostNetwork: true }), ["192.0.2.1"], "k");
  const own = await readFile("/etc/hosts", "utf8");
  const aliases = "\n# Entries added by HostAliases.\n1.2.3.4\tx\n";
  assert.equal(await readFile(path, "utf8"), `# Kubernetes-managed hosts file (host network).\n${own}${aliases}`);
});

test("a resolver configuration of the node that is missing is logged, and counts as empty", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-resolv-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  const none = { servers: [], searches: [], options: [] };
  assert.deepEqual([await readHostDns("", log), await readHostDns(join(dir, "none"), log)], [none, none]);
  assert.deepEqual(errors, ["Could not open resolv conf file"]);
  await writeFile(join(dir, "resolv.conf"), "nameserver 10.0.0.1\n");
  assert.deepEqual(await readHostDns(join(dir, "resolv.conf"), log), { ...none, servers: ["10.0.0.1"] });
});

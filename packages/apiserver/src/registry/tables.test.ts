import assert from "node:assert/strict";
import { test } from "node:test";
import { deploymentTable } from "./apps/deployments/table.ts";
import { jobTable } from "./batch/jobs/table.ts";
import { selectorText } from "./cells.ts";
import { eventTable } from "./core/events/table.ts";
import { nodeTable } from "./core/nodes/table.ts";
import { serviceTable } from "./core/services/table.ts";
import { agesAt } from "./generic/ages.ts";
import type { TableColumns } from "./generic/strategy.ts";

const created = "2022-01-01T00:00:00Z";
const now = Date.parse("2022-01-01T02:00:00Z");
const cells = (table: TableColumns, object: object): unknown[] => [
  ...table.cells({ metadata: { name: "x", creationTimestamp: created }, ...object }, agesAt(now)),
];

test("a node shows status, roles, version and addresses", () => {
  const node = {
    metadata: {
      name: "n",
      creationTimestamp: created,
      labels: { "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "" },
    },
    spec: { unschedulable: true },
    status: {
      conditions: [{ type: "Ready", status: "True" }],
      addresses: [{ type: "InternalIP", address: "10.0.0.1" }],
      nodeInfo: {
        kubeletVersion: "v1.23.0",
        osImage: "Debian",
        kernelVersion: "5.10",
        containerRuntimeVersion: "containerd://1.6",
      },
    },
  };
  assert.deepEqual(cells(nodeTable, node), [
    "n",
    "Ready,SchedulingDisabled",
    "control-plane,worker",
    "120m",
    "v1.23.0",
    "10.0.0.1",
    "<none>",
    "Debian",
    "5.10",
    "containerd://1.6",
  ]);
  assert.deepEqual(cells(nodeTable, { status: {} }).slice(1, 3), ["Unknown", "<none>"]);
});

test("a node shows each role once in order, not ready, and all addresses", () => {
  const node = {
    metadata: {
      name: "n",
      labels: {
        ...{ "node-role.kubernetes.io/": "x", "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/a": "" },
        ...{ "kubernetes.io/role": "worker", "other/role": "b" },
      },
    },
    status: {
      conditions: [
        { type: "MemoryPressure", status: "True" },
        { type: "NetworkReady", status: "True" },
        { type: "Ready", status: "Unknown" },
      ],
      addresses: [
        { type: "Hostname", address: "h" },
        { type: "ExternalIP", address: "1.2.3.4" },
        { type: "ExternalIP", address: "1.2.3.5" },
      ],
    },
  };
  assert.deepEqual(cells(nodeTable, node).slice(1), [
    ...["NotReady", "a,worker", "<unknown>", "", "<none>", "1.2.3.4", "<unknown>", "<unknown>", "<unknown>"],
  ]);
  const roleless = { metadata: { name: "n", labels: { "kubernetes.io/role": "" } } };
  assert.equal(cells(nodeTable, roleless)[2], "<none>");
});

for (const { name, spec, status, want } of [
  {
    name: "ClusterIP",
    spec: { type: "ClusterIP", clusterIPs: ["10.0.0.1"], ports: [{ port: 80, protocol: "TCP" }], selector: { b: "2", a: "1" } },
    want: ["ClusterIP", "10.0.0.1", "<none>", "80/TCP", "120m", "a=1,b=2"],
  },
  {
    name: "NodePort",
    spec: {
      type: "NodePort",
      clusterIPs: ["10.0.0.1"],
      ports: [{ port: 80, nodePort: 30000, protocol: "TCP" }],
      externalIPs: ["1.2.3.4"],
    },
    want: ["NodePort", "10.0.0.1", "1.2.3.4", "80:30000/TCP", "120m", "<none>"],
  },
  {
    name: "LoadBalancer",
    spec: { type: "LoadBalancer", clusterIPs: ["10.0.0.1"] },
    want: ["LoadBalancer", "10.0.0.1", "<pending>", "<none>", "120m", "<none>"],
  },
  {
    name: "LoadBalancer with an address",
    spec: { type: "LoadBalancer", clusterIPs: ["10.0.0.1"] },
    status: { loadBalancer: { ingress: [{ ip: "5.6.7.8" }, { hostname: "lb" }] } },
    want: ["LoadBalancer", "10.0.0.1", "5.6.7.8,lb", "<none>", "120m", "<none>"],
  },
  {
    name: "LoadBalancer with addresses of its own and others",
    spec: {
      ...{ type: "LoadBalancer", clusterIPs: ["10.0.0.1", "fd00::1"], externalIPs: ["9.9.9.9", "1.1.1.1"] },
      ports: [
        { port: 80, nodePort: 30000, protocol: "TCP" },
        { port: 53, protocol: "UDP" },
      ],
    },
    status: {
      loadBalancer: { ingress: [{ ip: "5.6.7.8", hostname: "lb" }, { ip: "10.6.7.8" }, { ip: "5.6.7.8" }, {}] },
    },
    want: ["LoadBalancer", "10.0.0.1", "10.6.7.8,5.6.7.8,9.9.9.9,1.1.1.1", "80:30000/TCP,53/UDP", "120m", "<none>"],
  },
  {
    name: "LoadBalancer with addresses of others only",
    spec: { type: "LoadBalancer", clusterIP: "10.0.0.1", externalIPs: ["9.9.9.9"] },
    want: ["LoadBalancer", "10.0.0.1", "9.9.9.9", "<none>", "120m", "<none>"],
  },
  {
    name: "ClusterIP with other addresses",
    spec: { type: "ClusterIP", clusterIP: "None", externalIPs: ["9.9.9.9", "1.1.1.1"] },
    want: ["ClusterIP", "None", "9.9.9.9,1.1.1.1", "<none>", "120m", "<none>"],
  },
  {
    name: "no known kind",
    spec: { type: "Own" },
    want: ["Own", "<none>", "<unknown>", "<none>", "120m", "<none>"],
  },
  {
    name: "ExternalName",
    spec: { type: "ExternalName", externalName: "e.com" },
    want: ["ExternalName", "<none>", "e.com", "<none>", "120m", "<none>"],
  },
]) {
  test(`a service of type ${name}`, () => assert.deepEqual(cells(serviceTable, { spec, status }).slice(1), want));
}

test("events show when, what and who, old and new ones", () => {
  const old = {
    type: "Warning",
    reason: "Failed",
    message: "no image\n",
    count: 3,
    firstTimestamp: created,
    lastTimestamp: "2022-01-01T01:00:00Z",
    involvedObject: { kind: "Pod", name: "p", fieldPath: "spec.containers{c}" },
    source: { component: "kubelet", host: "n" },
  };
  assert.deepEqual(cells(eventTable, old), [
    "60m",
    "Warning",
    "Failed",
    "pod/p",
    "spec.containers{c}",
    "kubelet, n",
    "no image",
    "120m",
    3,
    "x",
  ]);
  const series = {
    eventTime: created,
    series: { count: 7, lastObservedTime: "2022-01-01T01:59:00.000000Z" },
    reportingComponent: "scheduler",
    reportingInstance: "s-1",
    involvedObject: { kind: "Pod" },
  };
  const row = cells(eventTable, series);
  assert.deepEqual(row, ["60s", "", "", "pod", "", "scheduler, s-1", "", "120m", 8, "x"]);
});

for (const { name, event, want } of [
  {
    name: "without times, of the new way",
    event: { eventTime: "2022-01-01T01:30:00.000000Z", reportingComponent: "c", involvedObject: {} },
    want: ["30m", "", "c", "30m", 1],
  },
  {
    name: "that was seen first at a time",
    event: {
      firstTimestamp: "2022-01-01T01:00:00Z",
      eventTime: "2022-01-01T01:30:00Z",
      source: { host: "n" },
      reportingInstance: "i",
    },
    want: ["60m", "", ", n", "60m", 1],
  },
  {
    name: "whose component is known in both ways",
    event: {
      source: { component: "old" },
      reportingComponent: "new",
      reportingInstance: "i",
      count: 2,
      involvedObject: { kind: "Node" },
    },
    want: ["<unknown>", "node", "old", "<unknown>", 2],
  },
  {
    name: "of a series without a time",
    event: { firstTimestamp: created, lastTimestamp: created, series: { count: 1 }, count: 9 },
    want: ["<unknown>", "", "", "120m", 2],
  },
]) {
  test(`an event ${name}`, () => {
    const row = cells(eventTable, event);
    assert.deepEqual([row[0], row[3], row[5], row[7], row[8]], want);
  });
}

test("jobs show completions and how long they took", () => {
  const job = (spec: object, status: object): unknown[] => cells(jobTable, { spec, status }).slice(1, 3);
  assert.deepEqual(job({ completions: 3 }, { succeeded: 1, startTime: "2022-01-01T01:59:30Z" }), ["1/3", "30s"]);
  assert.deepEqual(job({ parallelism: 4 }, { startTime: created, completionTime: "2022-01-01T00:01:00Z" }), ["0/1 of 4", "60s"]);
  assert.deepEqual(job({}, {}), ["0/1", ""]);
});

test("deployments show ready of wanted", () => {
  assert.deepEqual(
    deploymentTable.columns.map(({ name }) => name),
    ["Name", "Ready", "Up-to-date", "Available", "Age", "Containers", "Images", "Selector"],
  );
  const deployment = {
    spec: {
      replicas: 3,
      selector: { matchLabels: { a: "b" } },
      template: {
        spec: {
          containers: [
            { name: "c", image: "i" },
            { name: "d", image: "j" },
          ],
        },
      },
    },
    status: { readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1 },
  };
  assert.deepEqual(cells(deploymentTable, deployment), ["x", "1/3", 2, 1, "120m", "c,d", "i,j", "a=b"]);
});

test("selectors are written by key", () => {
  assert.equal(
    selectorText({
      matchLabels: { z: "1" },
      matchExpressions: [
        { key: "b", operator: "In", values: ["y", "x"] },
        { key: "a", operator: "Exists" },
        { key: "c", operator: "DoesNotExist" },
        { key: "d", operator: "NotIn", values: ["q"] },
      ],
    }),
    "a,b in (x,y),!c,d notin (q),z=1",
  );
  const twice = { matchLabels: { a: "1" }, matchExpressions: [{ key: "a", operator: "Exists" }] };
  assert.equal(selectorText(twice), "a=1,a");
  assert.equal(selectorText({}), "<none>");
  assert.equal(selectorText(undefined), "<none>");
  assert.equal(
    selectorText({ matchLabels: { a: "b" }, matchExpressions: [{ key: "c", operator: "Gt", values: ["1"] }] }),
    "<error>",
  );
});

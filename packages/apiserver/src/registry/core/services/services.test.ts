import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "../../../testing/start-test-server.ts";
import { decodeBitmap } from "./bitmap.ts";

test("a bitmap is one big-endian number without leading zeros", () => {
  const bitmap = decodeBitmap("", 300);
  assert.equal(bitmap.encode(), "");
  bitmap.set(0);
  bitmap.set(9);
  assert.deepEqual([...Buffer.from(bitmap.encode(), "base64")], [2, 1]);
  const again = decodeBitmap(bitmap.encode(), 300);
  assert.deepEqual([...again.offsets()], [0, 9]);
  assert.equal(again.count(), 2);
  again.clear(9);
  assert.deepEqual([...Buffer.from(again.encode(), "base64")], [1]);
});

describe("services", () => {
  let server: TestServer;
  const path = "/api/v1/namespaces/default/services";
  before(async () => {
    server = await startTestServer(undefined, ["--advertise-address=192.0.2.1", "--service-node-port-range=30000-30009"]);
  });
  after(() => server.stop());

  const create = (name: string, spec: object) =>
    server.request("POST", path, { apiVersion: "v1", kind: "Service", metadata: { name }, spec });
  /** An address that is not allocated to any service. */
  const freeAddress = async (): Promise<string> => {
    const { body } = await server.request("GET", "/api/v1/services");
    const taken = new Set(body.items.map((service: { spec: { clusterIP: string } }) => service.spec.clusterIP));
    const last = Array.from({ length: 100 }, (_, i) => 100 + i).find((octet) => !taken.has(`10.0.0.${octet}`));
    return `10.0.0.${last}`;
  };
  const merge = (name: string, patch: object) =>
    server.request("PATCH", `${path}/${name}`, patch, { "content-type": "application/merge-patch+json" });

  test("get an address of the range", async () => {
    const { code, body } = await create("plain", { ports: [{ port: 80 }] });
    assert.equal(code, 201);
    assert.match(body.spec.clusterIP, /^10\.0\.0\.\d+$/);
    hasFields(body.spec, {
      clusterIPs: [body.spec.clusterIP],
      type: "ClusterIP",
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      internalTrafficPolicy: "Cluster",
      sessionAffinity: "None",
      ports: [{ port: 80, targetPort: 80, protocol: "TCP" }],
    });
  });

  test("keep the address they request, which no other gets until they are deleted", async () => {
    const clusterIP = await freeAddress();
    assert.equal((await create("first", { ports: [{ port: 80 }], clusterIP })).body.spec.clusterIP, clusterIP);
    const refused = await create("second", { ports: [{ port: 80 }], clusterIP });
    assert.equal(refused.code, 422);
    assert.match(refused.body.message, /spec\.clusterIPs: /);
    assert.ok(refused.body.message.includes(`failed to allocate IP ${clusterIP}: provided IP is already allocated`));
    assert.equal((await server.request("DELETE", `${path}/first`)).code, 200);
    assert.equal((await create("second", { ports: [{ port: 80 }], clusterIP })).code, 201);
  });

  test("are refused an address outside the range", async () => {
    const { code, body } = await create("outside", { ports: [{ port: 80 }], clusterIP: "10.9.0.9" });
    assert.equal(code, 422);
    assert.match(body.message, /provided IP is not in the valid range\. The range of valid IPs is 10\.0\.0\.0\/24/);
  });

  test("keep their address: it may not change", async () => {
    const { code, body } = await merge("plain", { spec: { clusterIP: await freeAddress() } });
    assert.equal(code, 422);
    assert.match(body.message, /spec\.clusterIPs\[0\]: .*may not change once set/);
  });

  test("conflict when the change was made from an old state, also where its values are wrong; of the latest state these are told", async () => {
    const { body: old } = await create("stale", { ports: [{ port: 80 }] });
    const { body: latest } = await merge("stale", { metadata: { labels: { a: "b" } } });
    const put = (service: { metadata: object; spec: object }) =>
      server.request("PUT", `${path}/stale`, {
        ...service,
        spec: { ...service.spec, clusterIP: "10.9.0.9", clusterIPs: ["10.9.0.9"], type: "Unknown" },
      });
    const stale = await put(old);
    assert.deepEqual([stale.code, stale.body.reason], [409, "Conflict"]);
    assert.match(stale.body.message, /^Operation cannot be fulfilled on services "stale": the object has been modified/);
    const wrong = await put(latest);
    assert.deepEqual([wrong.code, wrong.body.reason], [422, "Invalid"]);
    assert.equal((await server.request("GET", `${path}/stale`)).body.metadata.resourceVersion, latest.metadata.resourceVersion);
  });

  test("without an address are headless, of any family when they have no selector", async () => {
    assert.deepEqual(
      (await create("headless", { ports: [{ port: 80 }], clusterIP: "None", selector: { a: "b" } })).body.spec.ipFamilies,
      ["IPv4"],
    );
    const { body } = await create("headless-no-selector", { ports: [{ port: 80 }], clusterIP: "None" });
    assert.deepEqual(
      [body.spec.clusterIPs, body.spec.ipFamilies, body.spec.ipFamilyPolicy],
      [["None"], ["IPv4", "IPv6"], "RequireDualStack"],
    );
  });

  test("of type ExternalName have no address", async () => {
    const { body } = await create("external", { type: "ExternalName", externalName: "example.com" });
    assert.deepEqual(body.spec, { type: "ExternalName", externalName: "example.com", sessionAffinity: "None" });
  });

  test("get node ports, one for both protocols of a port, and give them back", async () => {
    const ports = [
      { name: "a", port: 53, nodePort: 30005 },
      { name: "b", port: 53, protocol: "UDP" },
    ];
    const { body } = await create("dns", { type: "NodePort", ports });
    assert.deepEqual(
      body.spec.ports.map((port: { nodePort: number }) => port.nodePort),
      [30005, 30005],
    );
    assert.equal(body.spec.externalTrafficPolicy, "Cluster");
    const refused = await create("other", { type: "NodePort", ports: [{ port: 1, nodePort: 30005 }] });
    assert.match(refused.body.message, /spec\.ports\[0\]\.nodePort: Invalid value: 30005: provided port is already allocated/);
    const fewer = await create("fewer", {
      type: "NodePort",
      ports: [
        { name: "a", port: 1 },
        { name: "b", port: 2 },
      ],
    });
    const { code, body: shrunk } = await merge("fewer", { spec: { type: "ClusterIP", ports: [fewer.body.spec.ports[1]] } });
    assert.equal(code, 200);
    assert.equal(shrunk.spec.ports[0].nodePort, undefined);
    const plain = await merge("dns", { spec: { type: "ClusterIP" } });
    assert.deepEqual(
      plain.body.spec.ports.map((port: { nodePort?: number }) => port.nodePort),
      [undefined, undefined],
    );
    assert.equal((await create("other", { type: "NodePort", ports: [{ port: 1, nodePort: 30005 }] })).code, 201);
  });

  test("keep their node ports when an update does not say them", async () => {
    const { body } = await create("kept", { type: "NodePort", ports: [{ port: 80 }] });
    const { nodePort } = body.spec.ports[0];
    delete body.spec.ports[0].nodePort;
    const after = await server.request("PUT", `${path}/kept`, body);
    assert.equal(after.body.spec.ports[0].nodePort, nodePort);
  });

  test("are refused when no node port is left", async () => {
    let code = 201;
    for (let i = 0; i < 12 && code === 201; i++)
      ({ code } = await create(`many-${i}`, { type: "NodePort", ports: [{ port: 80 }] }));
    assert.equal(code, 500);
  });

  test("take the endpoints of their name with them", async () => {
    const endpoints = "/api/v1/namespaces/default/endpoints";
    for (const name of ["kept", "gone"]) {
      await create(name, { ports: [{ port: 80 }] });
      await server.request("POST", endpoints, { apiVersion: "v1", kind: "Endpoints", metadata: { name }, subsets: [] });
    }
    const deleted = await server.request("DELETE", `${path}/kept?dryRun=All`);
    assert.equal(deleted.code, 200);
    assert.equal((await server.request("DELETE", `${path}/gone`)).code, 200);
    const codes = ["kept", "gone"].map(async (name) => (await server.request("GET", `${endpoints}/${name}`)).code);
    assert.deepEqual(await Promise.all(codes), [200, 404]);
  });

  test("that fail for another reason give back what they took", async () => {
    const clusterIP = await freeAddress();
    const refused = await create("plain", { ports: [{ port: 80 }], clusterIP });
    assert.equal(refused.code, 409);
    assert.equal((await create("retaken", { ports: [{ port: 80 }], clusterIP })).code, 201);
  });

  test("deleted together give back their addresses", async () => {
    const labels = { group: "together" };
    const clusterIP = await freeAddress();
    for (const [name, spec] of Object.entries({ "one-of-two": { clusterIP }, "two-of-two": {} })) {
      const service = { metadata: { name, labels }, spec: { ports: [{ port: 80 }], ...spec } };
      assert.equal((await server.request("POST", path, service)).code, 201);
    }
    const { code, body } = await server.request("DELETE", `${path}?labelSelector=group%3Dtogether`);
    assert.equal(code, 200);
    assert.deepEqual(
      body.items.map((service: { metadata: { name: string } }) => service.metadata.name),
      ["one-of-two", "two-of-two"],
    );
    assert.equal((await create("one-of-two", { ports: [{ port: 80 }], clusterIP })).code, 201);
  });

  test("of a dry run show an address and take none", async () => {
    const clusterIP = await freeAddress();
    const dry = await server.request("POST", `${path}?dryRun=All`, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "dry" },
      spec: { ports: [{ port: 80 }], clusterIP },
    });
    assert.deepEqual([dry.code, dry.body.spec.clusterIP], [201, clusterIP]);
    assert.equal((await create("wet", { ports: [{ port: 80 }], clusterIP })).code, 201);
  });

  test("of a dry run get no node port twice: more ports than the range has are refused", async () => {
    const ports = Array.from({ length: 11 }, (_, i) => ({ name: `p${i}`, port: 80 + i }));
    const dry = await server.request("POST", `${path}?dryRun=All`, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "dry" },
      spec: { type: "NodePort", ports },
    });
    assert.deepEqual(
      [dry.code, dry.body.message],
      [500, "Internal error occurred: failed to allocate a nodePort: range is full"],
    );
  });
});

test("a server that starts with other ranges writes an event for each service outside of them", async (t) => {
  const prefix = `--etcd-prefix=/test-${randomUUID()}`;
  const first = await startTestServer(t, [prefix]);
  const service = {
    metadata: { name: "web" },
    spec: { type: "NodePort", clusterIP: "10.0.0.9", ports: [{ port: 80, nodePort: 30005 }] },
  };
  assert.equal((await first.request("POST", "/api/v1/namespaces/default/services", service)).code, 201);
  await first.stop();
  const second = await startTestServer(t, [
    prefix,
    "--service-cluster-ip-range=10.0.1.0/24",
    "--service-node-port-range=31000-31100",
  ]);
  const events = await waitFor(async () => {
    const { body } = await second.request("GET", "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=web");
    const { items } = body as { items: { reason: string; source: object; involvedObject: { kind: string }; message: string }[] };
    return items.length === 2 ? items : undefined;
  });
  assert.deepEqual(
    events.map(({ reason, source, involvedObject, message }) => [reason, source, involvedObject.kind, message]).sort(),
    [
      [
        "ClusterIPOutOfRange",
        { component: "ipallocator-repair-controller" },
        "Service",
        "Cluster IP [IPv4]:10.0.0.9 is not within the service CIDR 10.0.1.0/24; please recreate service",
      ],
      [
        "PortOutOfRange",
        { component: "portallocator-repair-controller" },
        "Service",
        "Port 30005 is not within the port range 31000-31100; please recreate service",
      ],
    ],
  );
});

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startTestServer, type TestServer } from "../../../testing/start-test-server.ts";

const path = "/api/v1/namespaces/default/services";
const ports = [{ port: 80 }];
const selector = { app: "web" };
const first = "10.0.0.77";

for (const { cluster, ranges, cases } of [
  {
    cluster: "one range",
    ranges: "10.0.0.0/24",
    cases: [
      { name: "nothing said", spec: {}, want: ["SingleStack", ["IPv4"]] },
      { name: "two stacks preferred", spec: { ipFamilyPolicy: "PreferDualStack" }, want: ["PreferDualStack", ["IPv4"]] },
      {
        name: "two stacks required",
        spec: { ipFamilyPolicy: "RequireDualStack" },
        error: 'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
      },
      {
        name: "the other family",
        spec: { ipFamilies: ["IPv6"] },
        error: 'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
      },
      {
        name: "an address of the other family",
        spec: { clusterIP: "fd00::5" },
        error: 'spec.clusterIPs[0]: Invalid value: []string{"fd00::5"}: IPv6 is not configured on this cluster',
      },
      {
        name: "no address, no selector",
        spec: { clusterIP: "None", selector: undefined },
        want: ["RequireDualStack", ["IPv4", "IPv6"]],
      },
    ],
  },
  {
    cluster: "two ranges",
    ranges: "10.0.0.0/24,fd00:10::/112",
    cases: [
      { name: "nothing said", spec: {}, want: ["SingleStack", ["IPv4"]] },
      { name: "two stacks preferred", spec: { ipFamilyPolicy: "PreferDualStack" }, want: ["PreferDualStack", ["IPv4", "IPv6"]] },
      {
        name: "two stacks required, the second first",
        spec: { ipFamilyPolicy: "RequireDualStack", ipFamilies: ["IPv6"] },
        want: ["RequireDualStack", ["IPv6", "IPv4"]],
      },
      { name: "the second family", spec: { ipFamilies: ["IPv6"] }, want: ["SingleStack", ["IPv6"]] },
      {
        name: "two families without a policy",
        spec: { ipFamilies: ["IPv4", "IPv6"] },
        error:
          "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
      },
      {
        name: "an address of each family",
        spec: { ipFamilyPolicy: "RequireDualStack", clusterIP: "fd00:10::77", clusterIPs: ["fd00:10::77", first] },
        want: ["RequireDualStack", ["IPv6", "IPv4"]],
      },
      {
        name: "an address of each family, but not which of them comes first",
        spec: { ipFamilyPolicy: "RequireDualStack", clusterIPs: ["fd00:10::78", first] },
        error: `spec.clusterIPs: Invalid value: []string{"fd00:10::78", "${first}"}: must be empty when \`clusterIP\` is not specified`,
      },
      {
        name: "two addresses of a family",
        spec: { ipFamilyPolicy: "RequireDualStack", clusterIP: first, clusterIPs: [first, "10.0.0.78"] },
        error: `spec.clusterIPs: Invalid value: []string{"${first}", "10.0.0.78"}: may specify no more than one IP for each IP family`,
      },
    ],
  },
] as {
  cluster: string;
  ranges: string;
  cases: { name: string; spec: object; want?: [string, string[]]; error?: string }[];
}[]) {
  describe(cluster, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer(undefined, [`--service-cluster-ip-range=${ranges}`]);
    });
    after(() => server.stop());

    for (const [i, { name, spec, want, error }] of cases.entries()) {
      test(`with ${cluster}: ${name}`, async () => {
        const { code, body } = await server.request("POST", path, {
          metadata: { name: `case-${i}` },
          spec: { ports, selector, ...spec },
        });
        if (want === undefined) {
          assert.deepEqual([code, body.message], [422, `Service "case-${i}" is invalid: ${error}`]);
          return;
        }
        assert.equal(code, 201, body.message);
        assert.deepEqual([body.spec.ipFamilyPolicy, body.spec.ipFamilies], want);
        if (body.spec.clusterIP === "None") return;
        const families = body.spec.clusterIPs.map((ip: string) => (ip.includes(":") ? "IPv6" : "IPv4"));
        assert.deepEqual([families, body.spec.clusterIP], [want[1], body.spec.clusterIPs[0]]);
        await server.request("DELETE", `${path}/case-${i}`);
      });
    }
  });
}

test("a service gets a second address, keeps it, and gives it back only when its policy says so", async (t) => {
  const server = await startTestServer(t, ["--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112"]);
  const merge = (spec: object) =>
    server.request("PATCH", `${path}/web`, { spec }, { "content-type": "application/merge-patch+json" });
  const { body: made } = await server.request("POST", path, { metadata: { name: "web" }, spec: { ports, selector } });
  const primary = made.spec.clusterIP;

  const { body: both } = await merge({ ipFamilyPolicy: "PreferDualStack" });
  assert.deepEqual([both.spec.ipFamilies, both.spec.clusterIPs.length, both.spec.clusterIP], [["IPv4", "IPv6"], 2, primary]);
  const secondary = both.spec.clusterIPs[1];
  assert.match(secondary, /^fd00:10::/);

  const reduced = await merge({ clusterIPs: [primary] });
  assert.match(
    reduced.body.message,
    /spec\.ipFamilyPolicy: Invalid value: "PreferDualStack": must be 'SingleStack' to release the secondary cluster IP/,
  );
  const swapped = await merge({ ipFamilies: ["IPv6", "IPv4"], clusterIPs: [secondary, primary], clusterIP: secondary });
  assert.match(swapped.body.message, /spec\.clusterIPs\[0\]: Invalid value: .*: may not change once set/);

  const { body: single } = await merge({ ipFamilyPolicy: "SingleStack" });
  assert.deepEqual([single.spec.ipFamilies, single.spec.clusterIPs], [["IPv4"], [primary]]);
  const taken = await server.request("POST", path, {
    metadata: { name: "next" },
    spec: { ports, ipFamilies: ["IPv6"], clusterIP: secondary },
  });
  assert.deepEqual([taken.code, taken.body.spec.clusterIP], [201, secondary]);

  const external = await merge({ type: "ExternalName", externalName: "example.com" });
  const { clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy } = external.body.spec;
  assert.deepEqual([clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy], [undefined, undefined, undefined, undefined]);
});

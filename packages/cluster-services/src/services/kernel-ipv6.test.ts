import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServiceSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { runProgram } from "../host/run-program.ts";
import { needsRoot, serversOf } from "../testing/namespaces.ts";
import {
  addIpv6,
  addresses,
  addresses6,
  type Change,
  newNodeNetwork,
  startRules,
  testSettings,
} from "../testing/node-network.ts";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { cleanUp } from "./iptables.ts";
import { hasIpv6 } from "./kernel-settings.ts";

const skip = needsRoot || ((await hasIpv6(runProgram)) ? false : "this kernel has no IPv6 with a nat table");
const tcp = { protocol: "tcp", port: 80 } as const;

/** A Service of both families. `pods`: its endpoints on the node. */
function dualStack(name: string, last: number, pods: readonly ("pod1" | "pod2")[], spec: Partial<ServiceSpec> = {}): Change {
  const clusterIPs = [`10.96.0.${last}`, `fd00:96::${last}`];
  const ipv6 = {
    metadata: { namespace: "default", name: `${name}-2`, labels: { "kubernetes.io/service-name": name } },
    addressType: "IPv6",
  };
  return [
    aService(name, { clusterIP: clusterIPs[0] as string, clusterIPs, ipFamilies: ["IPv4", "IPv6"], ...spec }),
    aSlice(
      name,
      pods.map((pod) => anEndpoint(addresses[pod], "n1")),
    ),
    aSlice(
      name,
      pods.map((pod) => anEndpoint(addresses6[pod], "n1")),
      8080,
      ipv6,
    ),
  ];
}

test("connections through Services of two families, in network namespaces", { skip }, async (t) => {
  const network = await newNodeNetwork(t);
  await addIpv6(network);
  const { node, pod1, pod2, outside } = network;
  const families = [
    startRules(t, node),
    startRules(t, node, 50, { ...testSettings, family: "IPv6", clusterCidr: "fd00:77::/64" }),
  ];
  const put = (...changes: readonly Change[]) => Promise.all(families.map((rules) => rules.put(...changes)));
  await put(dualStack("web", 10, ["pod1", "pod2"]));

  await t.test("the cluster IP of each family answers from all endpoints, to pods with their own address", async () => {
    for (const [host, own] of [
      ["10.96.0.10", addresses.pod1],
      ["fd00:96::10", addresses6.pod1],
    ] as const) {
      const answers = await pod1.ask({ ...tcp, host, times: 30 });
      assert.deepEqual(serversOf(answers), ["pod1", "pod2"], host);
      for (const answer of answers.filter((one) => one.startsWith("pod2"))) assert.equal(answer, `pod2 ${own}`);
      assert.deepEqual(serversOf(await node.ask({ ...tcp, host, times: 30 })), ["pod1", "pod2"], `${host} from the node`);
    }
  });

  await t.test("a client outside of the cluster is masqueraded, so that answers come back", async () => {
    for (const answer of await outside.ask({ ...tcp, host: "fd00:96::10", times: 8 }))
      assert.match(answer, /^pod[12] fd00:77::1$/);
  });

  await t.test("a pod reaches itself through its Service", async () => {
    await put(dualStack("self", 12, ["pod1"]));
    assert.match((await pod1.ask({ ...tcp, host: "fd00:96::12" }))[0] ?? "", /^pod1 /);
  });

  await t.test("without endpoints of a family its cluster IP refuses, and the other family answers", async () => {
    const [service, ipv4] = dualStack("half", 13, ["pod2"]) as [Change[0], Change[1] & object];
    await put([service, ipv4]);
    for (const client of [pod1, node]) assert.deepEqual(await client.ask({ ...tcp, host: "fd00:96::13" }), ["refused"]);
    assert.deepEqual(serversOf(await pod1.ask({ ...tcp, host: "10.96.0.13" })), ["pod2"]);
    await put(dualStack("half", 13, ["pod2"]));
    assert.deepEqual(await pod1.ask({ ...tcp, host: "fd00:96::13" }), [`pod2 ${addresses6.pod1}`]);
  });

  await t.test("a node port answers on the node's addresses of both families", async () => {
    const ports = [{ port: 80, protocol: "TCP" as const, nodePort: 30080 }];
    await put(dualStack("np", 14, ["pod1", "pod2"], { type: "NodePort", ports }));
    for (const host of [addresses.node, addresses6.node])
      assert.deepEqual(serversOf(await outside.ask({ protocol: "tcp", host, port: 30080, times: 30 })), ["pod1", "pod2"], host);
    assert.deepEqual(await outside.ask({ protocol: "tcp", host: addresses6.node, port: 30081 }), ["refused"], "another port");
  });

  await t.test("external policy Local keeps the client's address", async () => {
    const ports = [{ port: 80, protocol: "TCP" as const, nodePort: 30090 }];
    await put(dualStack("local", 15, ["pod2"], { type: "NodePort", ports, externalTrafficPolicy: "Local" }));
    const requested = { protocol: "tcp", host: addresses6.node, port: 30090 } as const;
    assert.deepEqual(await outside.ask(requested), [`pod2 ${addresses6.outside}`]);
  });

  await t.test("session affinity keeps a client's endpoint until it is removed", async () => {
    const sticky = (pods: readonly ("pod1" | "pod2")[]): Change => dualStack("sticky", 16, pods, { sessionAffinity: "ClientIP" });
    await put(sticky(["pod1", "pod2"]));
    const first = serversOf(await node.ask({ ...tcp, host: "fd00:96::16", times: 20 }));
    assert.equal(first.length, 1);
    await put(sticky(first[0] === "pod1" ? ["pod2"] : ["pod1"]));
    assert.deepEqual(
      serversOf(await node.ask({ ...tcp, host: "fd00:96::16", times: 4 })),
      first[0] === "pod1" ? ["pod2"] : ["pod1"],
    );
  });

  await t.test(
    "a Service that becomes one of a single family goes from the other, and the clean-up leaves nothing of both",
    async () => {
      const [service, ipv4] = dualStack("web", 10, ["pod1"]) as [Change[0], Change[1] & object];
      const { spec } = service;
      await put([{ ...service, spec: { ...spec, clusterIPs: ["10.96.0.10"], ipFamilies: ["IPv4"] } }, ipv4]);
      assert.deepEqual(serversOf(await pod2.ask({ ...tcp, host: "10.96.0.10", times: 8 })), ["pod1"]);
      assert.ok(!(await node.run("ip6tables-save", [])).includes("fd00:96::10/128"));
      for (const rules of families) await rules.stop();
      await cleanUp("COX-", node.run);
      for (const program of ["iptables-save", "ip6tables-save"])
        assert.ok(!(await node.run(program, [])).includes("COX-"), program);
    },
  );
});

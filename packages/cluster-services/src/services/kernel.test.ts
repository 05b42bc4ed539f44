import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { ProgramError } from "../host/run-program.ts";
import { silenceMs } from "../testing/namespace-agent.ts";
import { needsRoot, serversOf } from "../testing/namespaces.ts";
import { addresses, type Change, newNodeNetwork, startRules } from "../testing/node-network.ts";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { cleanUp, isOfServices, removeChains } from "./iptables.ts";

const { pod1: ip1, pod2: ip2, remotePod, node: nodeIp, outside: outsideIp } = addresses;
const ep1 = anEndpoint(ip1, "n1");
const ep2 = anEndpoint(ip2, "n1");
const far = anEndpoint(remotePod, "n2");

test("connections through Services, in network namespaces", { skip: needsRoot }, async (t) => {
  const { node, pod1, pod2, outside } = await newNodeNetwork(t);
  const rules = startRules(t, node);
  const tcp = { protocol: "tcp", port: 80 } as const;
  await rules.put([aService("web"), aSlice("web", [ep1, ep2, far])]);

  await t.test("a cluster IP answers from all endpoints, to pods with their own address", async () => {
    const answers = await pod1.ask({ ...tcp, host: "10.96.0.10", times: 40 });
    assert.deepEqual(serversOf(answers), ["pod1", "pod2", "remote"]);
    for (const answer of answers.filter((one) => !one.startsWith("pod1"))) assert.equal(answer.split(" ")[1], ip1);
    assert.deepEqual(serversOf(await node.ask({ ...tcp, host: "10.96.0.10", times: 40 })), ["pod1", "pod2", "remote"]);
  });

  await t.test("a client outside of the cluster is masqueraded, so that answers come back", async () => {
    const answers = await outside.ask({ ...tcp, host: "10.96.0.10", times: 20 });
    for (const answer of answers) assert.match(answer, /^(pod[12] 10\.77\.0\.1|remote 192\.168\.78\.1)$/);
  });

  await t.test("without endpoints a cluster IP refuses, from pods and from the node", async () => {
    await rules.put([aService("empty", { clusterIP: "10.96.0.11" })]);
    assert.deepEqual(await pod1.ask({ ...tcp, host: "10.96.0.11" }), ["refused"]);
    assert.deepEqual(await node.ask({ ...tcp, host: "10.96.0.11" }), ["refused"]);
    await rules.put([aService("empty", { clusterIP: "10.96.0.11" }), aSlice("empty", [ep2])]);
    assert.deepEqual(await pod1.ask({ ...tcp, host: "10.96.0.11" }), [`pod2 ${ip1}`]);
    await rules.remove("default/empty");
    assert.deepEqual(serversOf(await pod1.ask({ ...tcp, host: "10.96.0.10", times: 20 })), ["pod1", "pod2", "remote"]);
  });

  await t.test("a pod reaches itself through its Service", async () => {
    await rules.put([aService("self", { clusterIP: "10.96.0.12" }), aSlice("self", [ep1])]);
    assert.match((await pod1.ask({ ...tcp, host: "10.96.0.12" }))[0] ?? "", /^pod1 /);
  });

  await t.test("node ports answer on every address of the node, loopback included", async () => {
    const ports = [{ port: 80, protocol: "TCP" as const, nodePort: 30080 }];
    await rules.put([aService("np", { type: "NodePort", clusterIP: "10.96.0.13", ports }), aSlice("np", [ep1, far])]);
    for (const [client, host] of [
      [outside, nodeIp],
      [node, "127.0.0.1"],
      [node, nodeIp],
      [pod2, "10.77.0.1"],
    ] as const) {
      const answers = await client.ask({ protocol: "tcp", host, port: 30080, times: 16 });
      assert.deepEqual(serversOf(answers), ["pod1", "remote"], `${host} from ${client.pid}`);
    }
    assert.deepEqual(
      await outside.ask({ protocol: "tcp", host: nodeIp, port: 30081 }),
      ["refused"],
      "another port of the bucket",
    );
  });

  await t.test("external policy Local keeps the client's address and uses this node's endpoints only", async () => {
    const ports = [{ port: 80, protocol: "TCP" as const, nodePort: 30090 }];
    const local = aService("local", { type: "NodePort", clusterIP: "10.96.0.14", ports, externalTrafficPolicy: "Local" });
    await rules.put([local, aSlice("local", [ep1, far])]);
    const requested = { protocol: "tcp", host: nodeIp, port: 30090 } as const;
    assert.deepEqual([...new Set(await outside.ask({ ...requested, times: 8 }))], [`pod1 ${outsideIp}`]);
    assert.deepEqual(
      serversOf(await pod2.ask({ ...requested, times: 16 })),
      ["pod1", "remote"],
      "inside the cluster it does not apply",
    );
    await rules.put([local, aSlice("local", [far])]);
    assert.deepEqual(
      await outside.ask({ ...requested, timeoutMs: silenceMs }),
      ["timeout"],
      "dropped where there is no endpoint",
    );
    assert.deepEqual(serversOf(await pod2.ask(requested)), ["remote"]);
    await rules.put([local, aSlice("local", [])]);
    assert.deepEqual(await outside.ask(requested), ["refused"]);
  });

  await t.test("internal policy Local uses this node's endpoints only", async () => {
    const local = aService("inner", { clusterIP: "10.96.0.15", internalTrafficPolicy: "Local" });
    await rules.put([local, aSlice("inner", [ep2, far])]);
    assert.deepEqual(serversOf(await pod1.ask({ ...tcp, host: "10.96.0.15", times: 8 })), ["pod2"]);
    await rules.put([local, aSlice("inner", [far])]);
    assert.deepEqual(await pod1.ask({ ...tcp, host: "10.96.0.15" }), ["refused"]);
  });

  await t.test("external addresses, and those of a load balancer for the networks that may use it", async () => {
    const spec = { type: "LoadBalancer", clusterIP: "10.96.0.16", externalIPs: ["203.0.113.5"] };
    const open = aService("lb", spec, ["203.0.113.6"]);
    await rules.put([open, aSlice("lb", [ep1])]);
    for (const host of ["203.0.113.5", "203.0.113.6"])
      assert.match((await outside.ask({ ...tcp, host }))[0] ?? "", /^pod1 10\.77\.0\.1$/);
    await rules.put([
      aService("lb", { ...spec, loadBalancerSourceRanges: ["198.51.100.0/24"] }, ["203.0.113.6"]),
      aSlice("lb", [ep1]),
    ]);
    assert.deepEqual(await outside.ask({ ...tcp, host: "203.0.113.6", timeoutMs: silenceMs }), ["timeout"]);
    assert.match((await outside.ask({ ...tcp, host: "203.0.113.5" }))[0] ?? "", /^pod1 /, "external IPs are open");
    const allowed = { ...spec, loadBalancerSourceRanges: [`${outsideIp}/32`] };
    await rules.put([aService("lb", allowed, ["203.0.113.6"]), aSlice("lb", [ep1])]);
    assert.match((await outside.ask({ ...tcp, host: "203.0.113.6" }))[0] ?? "", /^pod1 /);
  });

  await t.test("session affinity keeps a client's endpoint until it is removed", async () => {
    const sticky = aService("sticky", {
      clusterIP: "10.96.0.17",
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } },
    });
    await rules.put([sticky, aSlice("sticky", [ep1, ep2, far])]);
    const first = serversOf(await node.ask({ ...tcp, host: "10.96.0.17", times: 20 }));
    assert.equal(first.length, 1);
    await rules.put([aService("other", { clusterIP: "10.96.0.18" }), aSlice("other", [ep1])]);
    assert.deepEqual(serversOf(await node.ask({ ...tcp, host: "10.96.0.17", times: 4 })), first, "changes of others leave it");
    const left = { pod1: [ep2, far], pod2: [ep1, far], remote: [ep1, ep2] }[first[0] as "pod1"];
    await rules.put([sticky, aSlice("sticky", left)]);
    const next = serversOf(await node.ask({ ...tcp, host: "10.96.0.17", times: 20 }));
    assert.equal(next.length, 1);
    assert.notDeepEqual(next, first);
  });

  await t.test("a UDP client that keeps sending does not stay with a removed endpoint", async () => {
    const ports = [{ port: 53, protocol: "UDP" as const, nodePort: 30053 }];
    const dns = aService("dns", { type: "NodePort", clusterIP: "10.96.0.19", ports });
    const slice = (...endpoints: (typeof ep1)[]) =>
      aSlice("dns", endpoints, 8080, { ports: [{ name: "", port: 8080, protocol: "UDP" }] });
    const requested = { protocol: "udp", host: "10.96.0.19", port: 53, from: 40001 } as const;
    const byNodePort = { protocol: "udp", host: nodeIp, port: 30053, from: 40002 } as const;
    await rules.put([dns]);
    assert.deepEqual(await pod2.ask(requested), ["refused"]);
    await rules.put([dns, slice(ep1)]);
    assert.deepEqual(serversOf(await pod2.ask(requested)), ["pod1"]);
    assert.deepEqual(serversOf(await outside.ask(byNodePort)), ["pod1"]);
    await rules.put([dns, slice(far)]);
    await waitFor(async () => (await pod2.ask({ ...requested, timeoutMs: silenceMs }))[0]?.startsWith("remote"));
    assert.deepEqual(serversOf(await outside.ask(byNodePort)), ["remote"]);
  });

  await t.test("objects that lead to loopback or to no address reach nothing, and leave the rules of others alone", async () => {
    await node.request({ op: "listen", name: "node", port: 8082 });
    const port = [{ port: 8082, protocol: "TCP" as const }];
    const hostile = ["127.0.0.1", "0127.0.0.1", "0177.0.0.1", "169.254.169.254", "09.1.1.1"].map((address, index): Change => {
      const name = `hostile${index}`;
      return [
        aService(name, { clusterIP: `10.96.0.${200 + index}`, ports: port }),
        aSlice(name, [anEndpoint(address, "n1")], 8082),
      ];
    });
    const noPort = aSlice("no-port", [ep1], 99_999);
    const externalIPs = ["127.0.0.1", "0127.0.0.1", "0177.0.0.1"];
    const spec = { clusterIP: "10.96.0.211", ports: port, externalIPs, loadBalancerSourceRanges: ["::ffff:1.2.3.0/120"] };
    await rules.put(
      ...hostile,
      [aService("no-port", { clusterIP: "10.96.0.210" }), noPort],
      [aService("taker", { ...spec, type: "LoadBalancer" }, ["127.0.0.1"]), aSlice("taker", [ep1])],
      [aService("after", { clusterIP: "10.96.0.212" }), aSlice("after", [ep2])],
    );
    assert.match((await pod1.ask({ ...tcp, host: "10.96.0.212" }))[0] ?? "", /^pod2 /, "a Service written with them");
    for (const index of [0, 1, 3])
      assert.deepEqual(await pod1.ask({ protocol: "tcp", host: `10.96.0.${200 + index}`, port: 8082 }), ["refused"]);
    assert.deepEqual(await pod1.ask({ ...tcp, host: "10.96.0.210" }), ["refused"]);
    assert.match(
      (await node.ask({ protocol: "tcp", host: "127.0.0.1", port: 8082 }))[0] ?? "",
      /^node /,
      "not taken from the node",
    );
  });

  await t.test("rules that another program removed come back", async () => {
    await node.run("iptables", ["-t", "nat", "-F"]);
    const asked = { ...tcp, host: "10.96.0.12", timeoutMs: silenceMs };
    await waitFor(async () => (await pod2.ask(asked))[0] === `pod1 ${ip2}`);
    await node.run("iptables", ["-D", "FORWARD", "-m", "conntrack", "--ctstate", "NEW", "-j", "COX-FILTER"]);
    const check = ["-C", "FORWARD", "-m", "conntrack", "--ctstate", "NEW", "-j", "COX-FILTER"];
    await waitFor(async () => (await node.run("iptables", check)) === "", { retry: (err) => err instanceof ProgramError });
  });

  await t.test("a successor finds the rules, removes what is gone and keeps connections going", async (t) => {
    await rules.stop();
    assert.deepEqual(serversOf(await pod1.ask({ ...tcp, host: "10.96.0.12" })), ["pod1"], "they stay when the program ends");
    const next = startRules(t, node);
    await next.put([aService("web"), aSlice("web", [ep2])]);
    assert.deepEqual(serversOf(await pod1.ask({ ...tcp, host: "10.96.0.10", times: 4 })), ["pod2"]);
    const saved = await node.run("iptables-save", []);
    assert.ok(!saved.includes("10.96.0.12"), "a Service that went meanwhile");
    assert.equal(saved.match(/-A PREROUTING -j COX-SERVICES/g)?.length, 1);
    await next.stop();
  });

  await t.test("the clean-up leaves nothing and keeps the rules of others", async () => {
    await node.run("iptables", ["-t", "nat", "-A", "PREROUTING", "-d", "192.0.2.1/32", "-j", "ACCEPT"]);
    // Those of the parts pod-network and load-balancer-addresses, while this one is off.
    for (const chain of ["COX-NET-FORWARD", "COX-LB-INPUT"]) await node.run("iptables", ["-N", chain]);
    await removeChains(isOfServices("COX-"), node.run);
    const left = [...(await node.run("iptables-save", [])).matchAll(/COX-[\w-]+/g)].map(([chain]) => chain);
    assert.deepEqual([...new Set(left)].sort(), ["COX-LB-INPUT", "COX-NET-FORWARD"]);
    await cleanUp("COX-", node.run);
    const saved = await node.run("iptables-save", []);
    assert.ok(!saved.includes("COX-"), saved);
    assert.match(saved, /192\.0\.2\.1/);
    await cleanUp("COX-", node.run);
  });
});

/** Attacks with a node's credential, and proxied backends that stall or flood. */
import { Duplex } from "node:stream";
import { type BackendHandler, pourInto } from "../backend.ts";
import { type Attack, attacked, type Case } from "../case.ts";

const node = "/api/v1/nodes/hostile";
const lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const merge = "application/merge-patch+json";
const pod = { spec: { nodeName: "hostile", containers: [{ name: "c", image: "i" }] } };

async function withNode(attack: Attack, port = 1): Promise<void> {
  await attack.prepare("POST", "/api/v1/nodes", { body: { metadata: { name: "hostile" } } });
  const status = {
    addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  };
  await attack.prepare("PATCH", `${node}/status`, { type: merge, body: { status } });
  await attack.prepare("POST", `${attacked}/pods`, { body: { metadata: { name: "p" }, ...pod } });
}

async function withoutNode(attack: Attack): Promise<void> {
  await attack.prepare("DELETE", `${attacked}/pods/p?gracePeriodSeconds=0`);
  await attack.prepare("DELETE", node);
}

const asNode = (name: string, work: (attack: Attack, lane: number, round: number) => Promise<unknown>): Case => ({
  name,
  user: "node",
  setup: (attack) => withNode(attack),
  cleanup: withoutNode,
  run: (attack) => attack.repeat(20, (lane, round) => work(attack, lane, round)),
});

/** Requests that the API server proxies to the attacker's kubelet. */
const proxied = (
  name: string,
  handler: BackendHandler,
  paths: readonly string[],
  headers: Record<string, string> = {},
): Case => ({
  name,
  user: "owner",
  setup: async (attack) => withNode(attack, (await attack.backend(handler)).port),
  cleanup: withoutNode,
  run: (attack) =>
    attack.repeat(20, async (lane) => {
      const socket = await attack.tls();
      const fields = Object.entries({ ...Object.fromEntries(attack.auth), ...headers }).map(
        ([key, value]) => `${key}: ${value}\r\n`,
      );
      const [method, path] = (paths[lane % paths.length] as string).split(" ");
      socket.write(
        `${method} ${attacked}/pods/p/${path} HTTP/1.1\r\nhost: localhost\r\n${fields.join("")}content-length: 0\r\n\r\n`,
      );
      let bytes = 0;
      socket.on("data", (chunk: Buffer) => {
        if (bytes === 0) attack.count(chunk.toString("latin1", 9, 12));
        bytes += chunk.length;
      });
      await new Promise((resolve) => socket.once("close", resolve));
    }),
});

const stall: BackendHandler = { request: () => {}, upgrade: () => {} };
const pour: BackendHandler = {
  request(_request, response) {
    response.writeHead(200);
    pourInto(response);
  },
  upgrade(_request, socket) {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    if (socket instanceof Duplex) pourInto(socket);
  },
};
const lie: BackendHandler = {
  request(request, response) {
    response.writeHead(200, { "content-length": 5 });
    response.write("x");
    request.socket.end();
  },
  upgrade: (_request, socket) => void socket.end(`HTTP/1.1 101\r\n${"a: b\r\n".repeat(100_000)}`),
};
const spdy = { connection: "Upgrade", upgrade: "SPDY/3.1", "x-stream-protocol-version": "v4.channel.k8s.io" };
const streams = ["POST exec?command=a&stdout=true", "POST attach?stdout=true", "POST portforward"];

export const nodeCases: readonly Case[] = [
  asNode("a node's status, again and again", (attack, lane, round) =>
    attack.request("PATCH", `${node}/status`, {
      type: merge,
      body: { status: { conditions: [{ type: "Ready", status: "True", reason: `r${lane}-${round}` }] } },
    }),
  ),
  asNode("a node's status of 50 kB of images", (attack, lane, round) =>
    attack.request("PATCH", `${node}/status`, {
      type: merge,
      body: {
        status: {
          images: Array.from({ length: 500 }, (_, i) => ({ names: [`i${i}-${lane}-${round}${"x".repeat(60)}`], sizeBytes: 1 })),
        },
      },
    }),
  ),
  asNode("statuses of pods", (attack, lane, round) =>
    attack.request("PATCH", `${attacked}/pods/p/status`, { type: merge, body: { status: { message: `${lane}-${round}` } } }),
  ),
  asNode("leases of nodes, own and others'", (attack, lane, round) =>
    round % 2 === 0
      ? attack.request("POST", lease, { body: { metadata: { name: lane === 0 ? "hostile" : `n${lane}` }, spec: {} } })
      : attack.request("PATCH", `${lease}/hostile`, { type: merge, body: { spec: { holderIdentity: `${lane}-${round}` } } }),
  ),
  asNode("CSINodes, own and others'", (attack, lane, round) =>
    attack.request("POST", "/apis/storage.k8s.io/v1/csinodes", {
      body: { metadata: { name: lane % 2 === 0 ? "hostile" : `n${round}` }, spec: { drivers: [] } },
    }),
  ),
  asNode("what a node may not read", (attack, lane, round) =>
    attack.request(
      "GET",
      [`${attacked}/secrets/s${round}`, "/api/v1/secrets", `${attacked}/configmaps/c${lane}`][round % 3] as string,
    ),
  ),
  asNode("mirror pods", (attack, lane, round) =>
    attack.request("POST", `${attacked}/pods`, {
      body: { metadata: { name: `m-${lane}-${round}`, annotations: { "kubernetes.io/config.mirror": "x" } }, ...pod },
    }),
  ),
  proxied("logs of a kubelet that stalls", stall, ["GET log?follow=true", "GET log"]),
  proxied("logs of a kubelet that floods, unread", pour, ["GET log?follow=true"]),
  proxied("logs of a kubelet that lies of its length", lie, ["GET log"]),
  proxied("exec, attach and port-forward to a kubelet that stalls", stall, streams, spdy),
  proxied("exec, attach and port-forward to a kubelet that floods", pour, streams, spdy),
  proxied("exec, attach and port-forward to a kubelet that lies", lie, streams, spdy),
  proxied("the proxy to a pod without an address", stall, ["GET proxy/"]),
];

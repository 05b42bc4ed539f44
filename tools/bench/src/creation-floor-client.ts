import { readFileSync } from "node:fs";
import { connect, type OutgoingHttpHeaders } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { benchPod } from "./daemons/cluster-objects.ts";

/**
 * `node creation-floor-client.ts <kubeconfig> <namespace>`: creates 1,000 Pods and receives the events of a watch of all Pods, without
 * decoding anything. Prints the CPU time of each round.
 */
const [kubeconfig = "", namespace = ""] = process.argv.slice(2);
// Cast: written by `startControlPlane`.
const config = JSON.parse(readFileSync(kubeconfig, "utf8")) as {
  clusters: { cluster: { server: string; "certificate-authority-data"?: string } }[];
  users: { user: { token: string } }[];
};
const { server, "certificate-authority-data": ca = "" } = config.clusters[0]!.cluster;
const session = connect(server, { ca: Buffer.from(ca, "base64") });
const common = { authorization: `Bearer ${config.users[0]!.user.token}`, accept: "application/vnd.kubernetes.protobuf" };
const collection = `/api/v1/namespaces/${namespace}/pods`;
const count = 1_000;
/** As many creations as a ReplicaSet's controller has under way. */
const atOnce = 500;
const rounds = 3;
/** Until all Pods are ready, or deleted. */
const settleMs = 3_000;

function request(headers: OutgoingHttpHeaders, body: string): Promise<void> {
  const stream = session.request({ ...common, "content-type": "application/json", ...headers }, { endStream: false });
  stream.resume();
  stream.end(body);
  return new Promise((resolve, reject) => void stream.once("end", resolve).once("error", reject));
}

let received = 0;
session.request({ ...common, ":path": `${collection}?watch=1` }).on("data", ({ length }: Buffer) => {
  received += length;
});
for (let round = 1; round <= rounds; round++) {
  const bodies = Array.from({ length: count }, (_, index) => JSON.stringify(benchPod({ name: `floor-${index}` })));
  received = 0;
  const before = process.cpuUsage();
  for (let at = 0; at < count; at += atOnce) {
    await Promise.all(bodies.slice(at, at + atOnce).map((body) => request({ ":method": "POST", ":path": collection }, body)));
  }
  await sleep(settleMs);
  const { user, system } = process.cpuUsage(before);
  console.log(`${count} creations, round ${round}: CPU ${((user + system) / 1e6).toFixed(2)} s, ${received} bytes of events`);
  await request({ ":method": "DELETE", ":path": collection }, JSON.stringify({ gracePeriodSeconds: 0 }));
  await sleep(settleMs);
}
session.destroy();

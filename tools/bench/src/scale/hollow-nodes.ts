/** Process that simulates nodes: `hollow-nodes.ts <kubeconfig> <count>`. Their Pods become ready immediately. */
import { newClient } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { protobufMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { FakeNodes } from "@coxswain/testing/nodes/fake-nodes";
import { serveReports } from "./child.ts";

const [file = "", count = "0"] = process.argv.slice(2);
const client = newClient({ ...(await loadKubeconfig(file)), qps: -1, contentType: protobufMediaType });
const all = new FakeNodes({
  ...{
    client,
    clock: realClock,
    log: newLogger({ verbosity: 0, clock: realClock }),
    signal: new AbortController().signal,
    rules: [],
  },
  nodes: Array.from({ length: Number(count) }, (_, index) => ({ name: `node-${index + 1}` })),
  kubelet: { address: "127.0.0.1", port: 10250 },
});
await all.start();
serveReports(() => ({}));

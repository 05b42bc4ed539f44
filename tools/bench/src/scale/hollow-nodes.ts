/** Process that simulates nodes: `hollow-nodes.ts <kubeconfig> <count>`. Their Pods become ready immediately. */
import { newClient } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { protobufMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { FakeNodes } from "@coxswain/testing/nodes/fake-nodes";
import { serveReports } from "./child.ts";

const [file = "", count = "0"] = process.argv.slice(2);
const config = await loadKubeconfig(file);
const client = newClient({ ...config, qps: -1, contentType: protobufMediaType, omitsManagedFields: true });
const all = new FakeNodes({
  ...{
    client,
    clock: realClock,
    log: newLogger({ verbosity: 0, clock: realClock }),
    signal: new AbortController().signal,
    rules: [],
    // Kubelets of 5,000 machines keep the annotations of their own Pods; in one process those of all would have 700 MB.
    transform: (object) => {
      delete object.metadata.annotations;
      return object;
    },
  },
  nodes: Array.from({ length: Number(count) }, (_, index) => ({ name: `node-${index + 1}` })),
  kubelet: { address: "127.0.0.1", port: 10250 },
});
await all.start();
serveReports(() => ({}));

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Parts, startControlPlane } from "./daemons/cluster.ts";
import { PodView } from "./daemons/pod-view.ts";

/**
 * `main.ts floor`: the lower bound for a Deployment that gets 1,000 ready Pods: the CPU time of a process that only sends the creations with
 * Node's HTTP/2 and receives the events of all Pods, without decoding them. Pods become ready as in the table of the controllers.
 */
export async function benchCreationFloor(): Promise<void> {
  const parts = new Parts();
  try {
    const { client, kubeconfig, namespace } = await startControlPlane(parts);
    const pods = new PodView(client);
    parts.add(() => pods.stop());
    await pods.start();
    pods.fate = "ready";
    const program = fileURLToPath(new URL("creation-floor-client.ts", import.meta.url));
    const child = spawn(process.execPath, ["-C", "cox-source", program, kubeconfig, namespace], { stdio: "inherit" });
    await once(child, "exit");
  } finally {
    await parts.stop();
  }
}

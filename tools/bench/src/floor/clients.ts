import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Parts, startControlPlane } from "../daemons/cluster.ts";
import { PodView } from "../daemons/pod-view.ts";

/**
 * `main.ts floor`: lower bounds for two rows of the other daemons: the CPU time of a process that only sends their requests with Node's
 * HTTP/2 and receives the events of all Pods, without decoding them.
 */
export async function benchClientFloors(): Promise<void> {
  await benchClient("creation-client.ts", "ready");
  await benchClient("preemption-client.ts", "none");
}

/** @param fate what happens to Pods, as in the table of the daemon */
async function benchClient(program: string, fate: "none" | "ready"): Promise<void> {
  const parts = new Parts();
  try {
    const { client, kubeconfig, namespace } = await startControlPlane(parts);
    const pods = new PodView(client);
    parts.add(() => pods.stop());
    await pods.start();
    pods.fate = fate;
    const path = fileURLToPath(new URL(program, import.meta.url));
    const child = spawn(process.execPath, ["-C", "cox-source", path, kubeconfig, namespace], { stdio: "inherit" });
    await once(child, "exit");
  } finally {
    await parts.stop();
  }
}

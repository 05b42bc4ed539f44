import { newCriClient } from "@coxswain/node-agent/runtime/cri-client";

const requestTimeoutMs = 10_000;

/** Stops and removes all pods of a runtime through CRI, including their network namespaces and mounts. */
export async function removeAllPods(socket: string): Promise<void> {
  const runtime = newCriClient({ endpoint: `unix://${socket}`, requestTimeoutMs });
  try {
    const sandboxes = await runtime.listPodSandboxes();
    await Promise.allSettled(
      sandboxes.map(async ({ id }) => {
        await runtime.stopPodSandbox(id);
        await runtime.removePodSandbox(id);
      }),
    );
  } finally {
    runtime.close();
  }
}

import { connectRuntime } from "@coxswain/node-agent/runtime/cri-client";

/** Stops and removes every pod of a runtime through CRI, which also takes down its network namespace and mounts. */
export async function removeAllPods(socket: string): Promise<void> {
  const runtime = await connectRuntime(`unix://${socket}`);
  try {
    const { items } = await runtime.listPodSandbox({});
    await Promise.all(
      items.map(async ({ id }) => {
        await runtime.stopPodSandbox({ podSandboxId: id });
        await runtime.removePodSandbox({ podSandboxId: id });
      }),
    );
  } finally {
    runtime.close();
  }
}

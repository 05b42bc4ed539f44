import { controllerScenarios } from "./controller-scenarios.ts";
import { helpOf, parseDaemonOptions, type SizeFlags, sizeOf } from "./options.ts";
import type { RowReport } from "./report.ts";
import { runDaemonBench } from "./run.ts";

const controllerSizes: SizeFlags = {
  replicas: { help: "replicas of the Deployment that is scaled and updated", normal: [1000], quick: [20], most: 10_000 },
  deployments: { help: "Deployments of 10 made at once", normal: [100], quick: [3], most: 1_000 },
  completions: { help: "completions of the Job", normal: [1000], quick: [10], most: 10_000 },
  objects: { help: "objects of the namespace that is deleted", normal: [10_000], quick: [50], most: 100_000 },
  dependents: { help: "dependents of the object that is deleted", normal: [5_000], quick: [50], most: 100_000 },
  services: { help: "Services whose endpoints all change", normal: [100], quick: [4], most: 2_000 },
  endpoints: { help: "endpoints of each", normal: [50], quick: [5], most: 100 },
  "lost-nodes": { help: "nodes that are lost at once", normal: [500], quick: [10], most: 5_000 },
};

const about = `Time, CPU, requests and memory of the controller manager: etcd, our API server, and pods that the tool makes ready.`;

/** `main.ts controllers [flags]` */
export async function benchControllers(argv: readonly string[]): Promise<readonly RowReport[]> {
  const options = parseDaemonOptions(argv, controllerSizes);
  if (options.isHelp) {
    process.stdout.write(helpOf("controllers", about, controllerSizes));
    return [];
  }
  const size = (flag: string): number => sizeOf(options, flag);
  const scenarios = controllerScenarios({
    replicas: size("replicas"),
    deployments: size("deployments"),
    completions: size("completions"),
    objects: size("objects"),
    dependents: size("dependents"),
    services: size("services"),
    endpoints: size("endpoints"),
    lostNodes: size("lost-nodes"),
  });
  const flags = [
    "--leader-elect=false",
    // No client rate limit, because otherwise the benchmark would measure the limit.
    "--kube-api-qps=10000",
    "--kube-api-burst=10000",
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=4s",
    "--node-startup-grace-period=4s",
  ];
  return await runDaemonBench({ daemon: "kube-controller-manager", flags, peerFlags: ["--port=0"], scenarios }, options);
}

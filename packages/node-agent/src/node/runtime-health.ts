import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Cri } from "../runtime/cri-schema.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";

/** Health of the container runtime as of the last check. Source: pkg/kubelet/runtime.go, kubelet.go updateRuntimeUp */
export interface RuntimeHealth {
  /** Queries the runtime. @throws RuntimeError when it does not respond; the previous results remain */
  check(): Promise<void>;
  /** The problem when the runtime has not been ready for 30 s, which tolerates a restart of the runtime. */
  silence(): string | undefined;
  /** The RuntimeReady problem, without network problems. */
  problem(): string | undefined;
  /** The NetworkReady problem; undefined when the network is ready. */
  networkProblem(): string | undefined;
  /** Undefined before the first response. */
  version(): { name: string; version: string } | undefined;
  /** True when the last check succeeded and the runtime was ready. */
  isReady(): boolean;
}

const silentMs = 30_000;

/** Creates the health state; `check` has to be called periodically. */
export function newRuntimeHealth({ runtime, clock }: { runtime: ContainerRuntime; clock: Clock }): RuntimeHealth {
  let lastReady: number | undefined;
  let answers = false;
  let problem: string | undefined;
  let network: string | undefined = "network state unknown";
  let version: { name: string; version: string } | undefined;

  return {
    async check() {
      answers = false;
      const { conditions } = await runtime.status().catch((err) => {
        if (version !== undefined) version = { ...version, version: "Unknown" };
        throw err;
      });
      network = complaint(conditions, "NetworkReady");
      const notReady = complaint(conditions, "RuntimeReady");
      problem = notReady && `container runtime not ready: ${notReady}`;
      if (problem === undefined) lastReady = clock.monotonic();
      const { runtimeName, runtimeVersion } = await runtime.version();
      version = { name: runtimeName, version: runtimeVersion };
      answers = true;
    },
    silence() {
      if (lastReady === undefined) return "container runtime status check may not have completed yet";
      return clock.monotonic() - lastReady < silentMs ? undefined : "container runtime is down";
    },
    problem: () => problem,
    networkProblem: () => network,
    version: () => version,
    isReady: () => answers && problem === undefined,
  };
}

function complaint(conditions: readonly Cri<"RuntimeCondition">[], type: string): string | undefined {
  const condition = conditions.find((one) => one.type === type);
  if (condition?.status === true) return undefined;
  return `${type}=${condition?.status ?? false} reason:${condition?.reason ?? ""} message:${condition?.message ?? ""}`;
}

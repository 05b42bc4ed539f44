import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Cri } from "../runtime/cri-schema.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";

/** What the runtime says of itself, as of the last look. Source: pkg/kubelet/runtime.go, kubelet.go updateRuntimeUp */
export interface RuntimeHealth {
  /** Asks the runtime. @throws RuntimeError when there is no answer: nothing else is known then than before */
  check(): Promise<void>;
  /** It has not been ready for so long that the node is not. A runtime that is started anew is back before that. */
  silence(): string | undefined;
  /** Why it cannot run Pods, in its own words; what is wrong with the network alone is not among it. */
  problem(): string | undefined;
  /** Why Pods get no network, undefined when they do. */
  networkProblem(): string | undefined;
  /** Undefined before the first answer. */
  version(): { name: string; version: string } | undefined;
  /** Whether the last look found it ready. */
  isReady(): boolean;
}

const silentMs = 30_000;

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

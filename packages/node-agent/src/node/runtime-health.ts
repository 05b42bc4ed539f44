import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Cri } from "../runtime/cri-schema.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";

/** What the runtime says of itself, as of the last look. Source: pkg/kubelet/runtime.go */
export interface RuntimeHealth {
  /** Asks the runtime. Never throws: what fails is a problem. */
  check(): Promise<void>;
  /** What keeps Pods from running, for the condition Ready; without what is wrong with the network alone. */
  problems(): string[];
  /** Why Pods get no network, undefined when they do. */
  networkProblem(): string | undefined;
  version(): { name: string; version: string } | undefined;
  /** Whether the last look found it ready. */
  isReady(): boolean;
}

const silentMs = 30_000;

export function newRuntimeHealth({ runtime, clock }: { runtime: ContainerRuntime; clock: Clock }): RuntimeHealth {
  let lastReady = Number.NEGATIVE_INFINITY;
  let problem: string | undefined;
  let network: string | undefined = "network plugin is not ready: container runtime status check may not have completed yet";
  let version: { name: string; version: string } | undefined;

  async function check(): Promise<void> {
    let conditions: Cri<"RuntimeCondition">[];
    try {
      conditions = (await runtime.status()).conditions;
      if (version === undefined) {
        const { runtimeName, runtimeVersion } = await runtime.version();
        version = { name: runtimeName, version: runtimeVersion };
      }
    } catch (err) {
      problem = `container runtime status check failed: ${(err as Error).message}`;
      version = undefined;
      return;
    }
    network = complaint(conditions, "NetworkReady");
    const notReady = complaint(conditions, "RuntimeReady");
    problem = notReady === undefined ? undefined : `container runtime not ready: ${notReady}`;
    if (problem === undefined) lastReady = clock.monotonic();
  }

  return {
    check,
    problems: () =>
      [clock.monotonic() - lastReady > silentMs ? "container runtime is down" : undefined, problem].filter(
        (one) => one !== undefined,
      ),
    networkProblem: () => network,
    version: () => version,
    isReady: () => problem === undefined && version !== undefined,
  };
}

function complaint(conditions: readonly Cri<"RuntimeCondition">[], type: string): string | undefined {
  const condition = conditions.find((one) => one.type === type);
  if (condition?.status === true) return undefined;
  return `${type}=${condition?.status ?? false} reason:${condition?.reason ?? ""} message:${condition?.message ?? ""}`;
}

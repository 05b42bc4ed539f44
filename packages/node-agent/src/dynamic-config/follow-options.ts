import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Background } from "../background.ts";
import type { AgentEvents } from "../events.ts";
import type { ApiConnection } from "../node/api-connection.ts";

/** Dependencies for following the node's configuration source. */
export interface FollowOptions {
  /** Undefined in standalone mode: the checkpointed configuration is used, but not updated. */
  api: Pick<ApiConnection, "client" | "node" | "recorder"> | undefined;
  nodeName: string;
  notify: Pick<AgentEvents, "node">;
  metrics: MetricsRegistry;
  background: Background;
}

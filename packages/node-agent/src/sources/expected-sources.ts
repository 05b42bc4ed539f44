import { keysOf } from "@coxswain/apimachinery/process/narrowing/keys";
import type { AgentConfig } from "../agent-config.ts";
import type { SourceName } from "./merge.ts";

/** Pure: the sources that have to report before any Pod may be considered unwanted. */
export function expectedSources(
  config: Pick<AgentConfig, "staticPodPath" | "staticPodUrl">,
  hasApiserver: boolean,
): SourceName[] {
  const wanted: Record<SourceName, boolean> = {
    file: config.staticPodPath !== "",
    http: config.staticPodUrl !== "",
    api: hasApiserver,
  };
  return keysOf(wanted).filter((name) => wanted[name]);
}

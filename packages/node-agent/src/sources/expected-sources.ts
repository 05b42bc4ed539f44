import type { AgentConfig } from "../config.ts";
import type { SourceName } from "./merge.ts";

/** Pure: what has to be heard before anything is taken for unwanted. */
export function expectedSources(
  config: Pick<AgentConfig, "staticPodPath" | "staticPodUrl">,
  hasApiserver: boolean,
): SourceName[] {
  const wanted: Record<SourceName, boolean> = {
    file: config.staticPodPath !== "",
    http: config.staticPodUrl !== "",
    api: hasApiserver,
  };
  return (Object.keys(wanted) as SourceName[]).filter((name) => wanted[name]);
}

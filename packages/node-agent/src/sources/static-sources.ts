import type { Background } from "../background.ts";
import type { AgentConfig } from "../config.ts";
import { runFileSource } from "./file.ts";
import { type HttpSourceOptions, runHttpSource } from "./http.ts";

/** Follows the files and the URL that say which static Pods this node has. */
export function followStaticPods(
  config: AgentConfig,
  source: Pick<HttpSourceOptions, "sources" | "nodeName" | "clock" | "log">,
  { add, signal }: Background,
): void {
  const { staticPodPath, fileCheckFrequencyMs, staticPodUrl, staticPodUrlHeader, httpCheckFrequencyMs } = config;
  if (staticPodPath !== "") {
    add(runFileSource({ ...source, path: staticPodPath, frequencyMs: fileCheckFrequencyMs }, signal));
  }
  if (staticPodUrl !== "") {
    const headers = staticPodUrlHeader ?? {};
    add(runHttpSource({ ...source, url: staticPodUrl, headers, frequencyMs: httpCheckFrequencyMs }, signal));
  }
}

import type { AgentConfig } from "../agent-config.ts";
import type { Background } from "../background.ts";
import { runFileSource } from "./file.ts";
import { type HttpSourceOptions, runHttpSource } from "./http.ts";

/** Starts the file and HTTP sources of static Pods. */
export function followStaticPods(
  config: AgentConfig,
  source: Pick<HttpSourceOptions, "sources" | "nodeName" | "clock" | "turns" | "log">,
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

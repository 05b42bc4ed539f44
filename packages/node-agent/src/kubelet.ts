import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { ConfigError, runMain } from "@coxswain/apimachinery/flags/run-main";
import { ineffectiveFields, unknownFields } from "@coxswain/apimachinery/flags/settings";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { tuneDaemonHeap } from "@coxswain/apimachinery/process/memory/daemon-heap";
import { notifySystemd } from "@coxswain/apimachinery/serving/systemd-notify";
import { startAgent } from "./agent.ts";
import { newAgentConfig } from "./config.ts";
import { openDynamicConfig } from "./dynamic-config/dynamic-config.ts";
import { kubelet } from "./flags.ts";
import { addFileThreads } from "./host/file-threads.ts";
import { prepareHost } from "./host/prepare-host.ts";
import { bootstrapKubeconfig } from "./node/certificates.ts";
import { nodeNameOf } from "./node/identity.ts";
import { runOnceConfig, waitUntilRunning } from "./run-once.ts";
import { agentSettings, kubeletConfiguration } from "./settings/table.ts";

addFileThreads(process.env);
await runMain(kubelet, async (flags, { log, signal, set }) => {
  const local = newAgentConfig(flags, set);
  const dynamic = local.dynamicConfigDir === "" ? undefined : openDynamicConfig(flags, set, local, { clock: realClock, log });
  const written = dynamic?.config ?? local;
  const config = written.runOnce ? runOnceConfig(written) : written;
  const unknown = unknownFields(kubeletConfiguration, config.written).map((path) => `unknown field ${JSON.stringify(path)}`);
  if (unknown.length > 0)
    log.warn("Using lenient decoding as strict decoding failed", { err: `strict decoding error: ${unknown.join(", ")}` });
  const ineffective = ineffectiveFields(agentSettings, config.written);
  if (ineffective.length > 0)
    log.warn("these fields of the configuration file have no effect yet", { fields: ineffective.join(",") });
  const featureGates = newFeatureGates("kubelet", config.featureGates);
  const host = await prepareHost(config, { clock: realClock, log, signal });
  if (config.kubeconfig !== "" && config.bootstrapKubeconfig !== "") {
    const nodeName = nodeNameOf(config, hostname());
    const { kubeconfig, bootstrapKubeconfig: bootstrap, certDir } = config;
    const rotates = config.rotateCertificates;
    await bootstrapKubeconfig(kubeconfig, bootstrap, { nodeName, certDir, rotates, clock: realClock, log }, signal);
  }
  if (config.kubeconfig !== "" && !existsSync(config.kubeconfig)) {
    throw new ConfigError(`invalid kubeconfig: stat ${config.kubeconfig}: no such file or directory`);
  }
  const api = config.kubeconfig === "" ? undefined : await loadKubeconfig(config.kubeconfig);
  tuneDaemonHeap({ youngBytes: 0 });
  const agent = await startAgent({ config, api, featureGates, dynamic, clock: realClock, log });
  if (config.runOnce) {
    try {
      await waitUntilRunning(agent.pending, realClock, signal);
    } finally {
      await agent.stop();
    }
    return;
  }
  void notifySystemd(log);
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await Promise.race([stopped, host.contended, ...(dynamic ? [dynamic.replaced] : [])]);
  await agent.stop();
});

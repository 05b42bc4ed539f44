import { type FlagTable, flags, type Program, section } from "@coxswain/apimachinery/flags/flags";
import { flagsOf } from "@coxswain/apimachinery/flags/settings";
import { klogIsLeaving, loggingFlags } from "@coxswain/apimachinery/flags/shared-flags";
import { metricsSettings } from "./settings/metrics.ts";
import { kubeletSettings } from "./settings/table.ts";
import { ignoredFlags } from "./settings/without-effect.ts";

/** Values by flag name; durations in milliseconds. */
export type KubeletFlags = Readonly<Record<string, unknown>>;

export const kubelet: Program<FlagTable> = {
  name: "kubelet",
  description:
    "The kubelet is the agent that runs on each node. It registers the node with the API server under the host's name, a name given by a flag, or one from the cloud provider. It works on pod specifications: YAML or JSON objects that describe pods. It takes them from the API server, and also from files (a directory checked every 20 seconds) and from an HTTP endpoint, and makes sure that the containers they describe run and are healthy. It does not manage containers that Kubernetes did not create.",
  unsectioned: true,
  flags: flags(
    section("Kubelet", { ...flagsOf(kubeletSettings), ...ignoredFlags }),
    section("Metrics", flagsOf(metricsSettings)),
    section("Logs", {
      ...loggingFlags,
      "experimental-logging-sanitization": { ...loggingFlags["experimental-logging-sanitization"], deprecated: klogIsLeaving },
      "logging-format": { ...loggingFlags["logging-format"], deprecated: klogIsLeaving },
    }),
  ),
};

import { fileShape, type SettingValues } from "@coxswain/apimachinery/flags/settings";
import { apiConnectionSettings } from "./api-connection.ts";
import { evictionSettings } from "./eviction.ts";
import { hostSettings } from "./host.ts";
import { metricsSettings } from "./metrics.ts";
import { nodeSettings } from "./node.ts";
import { podSettings } from "./pods.ts";
import { processSettings } from "./process.ts";
import { resourceSettings } from "./resources.ts";
import { runtimeSettings } from "./runtime.ts";
import { serverSettings } from "./server.ts";
import { settingsWithoutEffect } from "./without-effect.ts";

/** All settings of the kubelet. Validation errors are in the order of this table. */
export const kubeletSettings = {
  ...serverSettings,
  ...apiConnectionSettings,
  ...processSettings,
  ...nodeSettings,
  ...podSettings,
  ...runtimeSettings,
  ...resourceSettings,
  ...hostSettings,
  ...evictionSettings,
  ...settingsWithoutEffect,
};

export const agentSettings = { ...kubeletSettings, ...metricsSettings };
export type AgentSettings = SettingValues<typeof agentSettings>;

/** The fields of the configuration file. Source: k8s.io/kubelet/config/v1beta1 */
export const kubeletConfiguration = fileShape(agentSettings, {
  "": "KubeletConfiguration",
  authentication: "KubeletAuthentication",
  "authentication.x509": "KubeletX509Authentication",
  "authentication.webhook": "KubeletWebhookAuthentication",
  "authentication.anonymous": "KubeletAnonymousAuthentication",
  authorization: "KubeletAuthorization",
  "authorization.webhook": "KubeletWebhookAuthorization",
  memorySwap: "MemorySwapConfiguration",
});
